package vfstest

import (
	"bytes"
	"math/rand/v2"
	"slices"
)

const (
	pageSize    = 4096
	sectorSize  = 512 // what a power cut leaves written or not, as a whole
	pageSectors = pageSize / sectorSize
)

// page is a part of a file. Nil is a page of zeros.
type page [pageSize]byte

// pages is an image of a file. Its pages may be those of others, so they never change. Behind the size are
// zeros.
type pages struct {
	list []*page
	size int64
}

func pagesFor(size int64) int { return int((size + pageSize - 1) / pageSize) }

// resized returns the image with another size.
func (p pages) resized(size int64) pages {
	n := pagesFor(size)
	list := make([]*page, n)
	copy(list, p.list)
	if rest := size % pageSize; rest > 0 && size < p.size && list[n-1] != nil {
		last := *list[n-1]
		clear(last[rest:])
		list[n-1] = &last
	}
	return pages{list, size}
}

// setSector copies a sector of another image, or zeros. Pages that the image does not own are copied first.
func (p pages) setSector(n int, from pages, owned map[int]bool) {
	i, at := n/pageSectors, n%pageSectors*sectorSize
	if !owned[i] {
		owned[i] = true
		own := new(page)
		if p.list[i] != nil {
			*own = *p.list[i]
		}
		p.list[i] = own
	}
	sector := p.list[i][at : at+sectorSize]
	clear(sector)
	if i < len(from.list) && from.list[i] != nil {
		copy(sector, from.list[i][at:])
	}
	if end := p.size - int64(n)*sectorSize; end < sectorSize {
		clear(sector[max(end, 0):])
	}
}

// content is what a file has: now, and on the disk.
//
// A failed fsync makes sectors clean without their being on disk: they can be read, but only writing them
// again brings them there.
type content struct {
	now    pages
	own    []bool  // by page of now: no image has it, so it may change
	dirty  []uint8 // by page of now: a bit for each sector that was written since it was forced to disk
	onDisk pages
	lost   bool // an fsync has failed: sectors that are clean may differ from those on disk
}

// extend makes the file longer, with zeros.
func (c *content) extend(size int64) {
	from := c.now.size
	for n := pagesFor(size); len(c.now.list) < n; {
		c.now.list, c.own, c.dirty = append(c.now.list, nil), append(c.own, false), append(c.dirty, 0)
	}
	c.now.size = size
	c.touch(from, size)
}

// touch makes the sectors of a range dirty, even if they have the same bytes as before.
func (c *content) touch(from, to int64) {
	for n := from / sectorSize; n*sectorSize < to; n++ {
		c.dirty[n/pageSectors] |= 1 << (n % pageSectors)
	}
}

func (c *content) write(b []byte, at int64) {
	if end := at + int64(len(b)); end > c.now.size {
		c.extend(end)
	}
	c.touch(at, at+int64(len(b)))
	for len(b) > 0 {
		part := b[:min(len(b), int(pageSize-at%pageSize))]
		if i := int(at / pageSize); c.now.list[i] != nil || bytes.Count(part, []byte{0}) < len(part) {
			copy(c.writable(i)[at%pageSize:], part)
		}
		b, at = b[len(part):], at+int64(len(part))
	}
}

// writable returns a page that may change.
func (c *content) writable(i int) *page {
	if !c.own[i] {
		own := new(page)
		if c.now.list[i] != nil {
			*own = *c.now.list[i]
		}
		c.now.list[i], c.own[i] = own, true
	}
	return c.now.list[i]
}

func (c *content) read(b []byte, at int64) int {
	b = b[:max(min(int64(len(b)), c.now.size-at), 0)]
	for done := 0; done < len(b); {
		i, off := int((at+int64(done))/pageSize), (at+int64(done))%pageSize
		part := b[done:min(len(b), done+int(pageSize-off))]
		if p := c.now.list[i]; p == nil {
			clear(part)
		} else {
			copy(part, p[off:])
		}
		done += len(part)
	}
	return len(b)
}

func (c *content) truncate(size int64) {
	if size >= c.now.size {
		c.extend(size)
		return
	}
	n := pagesFor(size)
	c.now.list, c.own, c.dirty, c.now.size = c.now.list[:n:n], c.own[:n], c.dirty[:n], size
	if rest := size % pageSize; rest > 0 {
		if c.now.list[n-1] != nil {
			clear(c.writable(n - 1)[rest:])
		}
		for s := (rest + sectorSize - 1) / sectorSize; s < pageSectors; s++ {
			c.dirty[n-1] &^= 1 << s
		}
	}
}

// eachDirty visits the dirty sectors, in order.
func (c *content) eachDirty(visit func(sector int)) {
	for i, bits := range c.dirty {
		for s := 0; bits>>s > 0; s++ {
			if bits>>s&1 > 0 {
				visit(i*pageSectors + s)
			}
		}
	}
}

// share returns the file as it can be read now. Its pages do not change any more.
func (c *content) share() pages {
	clear(c.own)
	return pages{slices.Clone(c.now.list), c.now.size}
}

// written returns the file if the system has written all dirty sectors below a size.
func (c *content) written(size int64) pages {
	if !c.lost && size == c.now.size {
		return c.share()
	}
	image, owned := c.onDisk.resized(size), make(map[int]bool)
	c.eachDirty(func(n int) {
		if int64(n)*sectorSize < size {
			image.setSector(n, c.now, owned)
		}
	})
	return image
}

// force brings what is below a size to disk, and the size.
func (c *content) force(size int64) {
	size = min(size, c.now.size)
	c.onDisk = c.written(size)
	if size == c.now.size {
		clear(c.dirty)
		return
	}
	for n := range int(size / sectorSize) {
		c.dirty[n/pageSectors] &^= 1 << (n % pageSectors)
	}
}

// lose is a failed fsync. Some of the dirty sectors are on disk, or with a nil r none.
func (c *content) lose(r *rand.Rand) {
	if r != nil {
		image, owned := c.written(c.now.size), make(map[int]bool)
		c.eachDirty(func(n int) {
			if r.IntN(2) == 0 {
				image.setSector(n, c.onDisk, owned)
			}
		})
		c.onDisk = image
	}
	clear(c.dirty)
	c.lost = true
}

// torn is the file with some of the bytes that were not forced to disk: a part of those appended, or some of
// the sectors.
func (c *content) torn(r *rand.Rand) pages {
	if c.now.size < c.onDisk.size { // it has been cut meanwhile
		if r.IntN(2) == 0 {
			return c.share()
		}
		return c.onDisk
	}
	left := c.written(c.now.size)
	if from := c.onDisk.size + r.Int64N(c.now.size-c.onDisk.size+1); r.IntN(2) == 0 {
		return left.resized(from)
	}
	owned := make(map[int]bool)
	c.eachDirty(func(n int) {
		if r.IntN(2) == 0 {
			left.setSector(n, c.onDisk, owned)
		}
	})
	return left
}

// clone returns a content that changes independently.
func (c *content) clone() content {
	now := c.share()
	return content{now: now, own: make([]bool, len(now.list)), dirty: slices.Clone(c.dirty), onDisk: c.onDisk, lost: c.lost}
}

// found is a content as a start finds it: all of it is on disk.
func found(image pages) content {
	image.list = slices.Clip(image.list)
	n := len(image.list)
	return content{now: pages{slices.Clone(image.list), image.size}, own: make([]bool, n), dirty: make([]uint8, n), onDisk: image}
}
