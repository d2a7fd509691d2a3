package keyspace

// pieceSize is how many elements a piece of a pile holds.
const (
	pieceBits = 10
	pieceSize = 1 << pieceBits
)

// pile is a list that grows and shrinks at its end by pieces of a fixed size: what is in it is never
// copied, so that no push takes long, and no more than one piece is unused. Only the first piece
// grows by copying, for there are many tables of few items.
type pile[T any] struct {
	pieces [][]T // all of pieceSize but the last in use; one more may be kept for what comes
	n      int
}

// at gives the place of an element. It is valid until the pile shrinks, or while the pile has less than a
// piece, until the next push.
func (p *pile[T]) at(i int) *T { return &p.pieces[i>>pieceBits][i&(pieceSize-1)] }

func (p *pile[T]) push(v T) {
	piece := p.n >> pieceBits
	if piece == len(p.pieces) {
		var first []T // the first piece grows
		if piece > 0 {
			first = make([]T, 0, pieceSize)
		}
		p.pieces = append(p.pieces, first)
	}
	p.pieces[piece] = append(p.pieces[piece], v)
	p.n++
}

// cut shortens the pile to n elements.
func (p *pile[T]) cut(n int) {
	for last := (p.n - 1) >> pieceBits; last >= 0 && last >= n>>pieceBits; last-- {
		piece := p.pieces[last]
		keep := max(n-last<<pieceBits, 0)
		clear(piece[keep:])
		p.pieces[last] = piece[:keep]
	}
	p.n = n
	if most := (n+pieceSize-1)>>pieceBits + 1; len(p.pieces) > most { // one to spare
		clear(p.pieces[most:])
		p.pieces = p.pieces[:most]
	}
	if n == 0 {
		p.pieces = nil
	}
}
