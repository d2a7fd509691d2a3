package main

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// The plot has a bar for each figure. The further a bar goes to the right, the better mayfly is than
// Redis. Marks show the target and the spread between rounds. The scale is logarithmic.

const (
	plotWidth  = 960
	labelWidth = 400 // to the left of the bars
	barHeight  = 18

	worstShown, bestShown = 1.0 / 8, 8.0 // ratios at the edges; longer bars end in an arrow

	metColour    = "#1a7f64"
	missedColour = "#c2410c"
	openColour   = "#64748b" // there is no target
)

// canvas collects the elements of a plot.
type canvas struct{ strings.Builder }

func (c *canvas) text(x, y float64, anchor, style, text string) {
	fmt.Fprintf(c, `<text x="%.1f" y="%.1f" text-anchor="%s" %s>%s</text>`+"\n", x, y, anchor, style, html.EscapeString(text))
}

func (c *canvas) line(x1, y1, x2, y2 float64, style string) {
	fmt.Fprintf(c, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" %s/>`+"\n", x1, y1, x2, y2, style)
}

// advantage inverts a ratio where less is better, so that more is better in all of them.
func (r row) advantage(ratio float64) float64 {
	if r.Better == less {
		return 1 / ratio
	}
	return ratio
}

// plot renders the results as SVG.
func (r *results) plot() string {
	var compared []row
	for _, row := range r.Rows {
		if m := row.ratio().Median; m > 0 && !math.IsInf(m, 0) && row.Target != 0 {
			compared = append(compared, row)
		}
	}
	const top = 108.0
	high := top + float64(len(compared)*barHeight) + 40
	var c canvas
	fmt.Fprintf(&c, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %.0f" width="%d" height="%.0f" font-family="sans-serif" font-size="12" fill="#1f2937">`+"\n",
		plotWidth, high, plotWidth, high)
	fmt.Fprintf(&c, `<rect width="%d" height="%.0f" fill="#ffffff"/>`+"\n", plotWidth, high)
	title := "mayfly compared with Redis " + r.Machine.Redis
	if r.Quick {
		title += " – a quick run, not to be quoted"
	}
	c.text(16, 24, "start", `font-size="16" font-weight="bold"`, title)
	c.text(16, 44, "start", `fill="#6b7280"`, fmt.Sprintf("%d ids, documents of %d bytes, %d connections; %s, %d cores, load average %s at the start",
		r.IDs, bodySize, connections, r.Machine.CPU, r.Machine.Cores, r.Machine.Load))
	c.text(16, 60, "start", `fill="#6b7280"`, fmt.Sprintf("commit %s; %s", r.Machine.Commit, r.Machine.Date.Format("2006-01-02")))
	if len(compared) == 0 {
		c.text(16, top, "start", "", "There is nothing to compare with: "+noRedis+".")
	} else {
		c.bars(compared, top)
	}
	c.WriteString("</svg>\n")
	return c.String()
}

// bars draws the rows, from the y coordinate top downwards.
func (c *canvas) bars(rows []row, top float64) {
	const right = plotWidth - 130
	x := func(advantage float64) float64 {
		share := math.Log(min(max(advantage, worstShown), bestShown)/worstShown) / math.Log(bestShown/worstShown)
		return labelWidth + share*(right-labelWidth)
	}
	bottom := top + float64(len(rows)*barHeight)
	c.text(16, top-30, "start", "", "bar: ratio of medians, to the right mayfly is better; green: target met, red: missed; |: target; thin line: between rounds")
	for _, at := range []float64{1.0 / 8, 1.0 / 4, 1.0 / 2, 1, 2, 4, 8} {
		style := `stroke="#e5e7eb"`
		if at == 1 {
			style = `stroke="#6b7280"`
		}
		c.line(x(at), top-8, x(at), bottom, style)
		label := fmt.Sprint(at)
		if at < 1 {
			label = fmt.Sprint("1/", 1/at)
		}
		c.text(x(at), top-14, "middle", `fill="#6b7280"`, label)
	}
	c.text(plotWidth-16, top-14, "end", `fill="#6b7280"`, "times better")
	for i, r := range rows {
		y := top + float64(i*barHeight)
		ratio := r.ratio()
		better := r.advantage(ratio.Median)
		colour := openColour
		switch verdict := r.verdict(); {
		case verdict == "met":
			colour = metColour
		case verdict != "":
			colour = missedColour
		}
		c.text(labelWidth-8, y+13, "end", "", r.label())
		from, to := min(x(1), x(better)), max(x(1), x(better))
		fmt.Fprintf(c, `<rect x="%.1f" y="%.1f" width="%.1f" height="%d" fill="%s"/>`+"\n", from, y+3, max(to-from, 1), barHeight-6, colour)
		c.line(x(r.advantage(ratio.Min)), y+9, x(r.advantage(ratio.Max)), y+9, `stroke="#111827"`)
		if r.Target != 0 {
			c.line(x(r.advantage(r.Target)), y+1, x(r.advantage(r.Target)), y+barHeight-1, `stroke="#111827" stroke-width="2"`)
		}
		text := digits(better)
		switch {
		case better > bestShown:
			text += " →"
		case better < worstShown:
			text = "← " + text
		}
		c.text(plotWidth-16, y+13, "end", "", text)
	}
}

// label returns a short name of a row.
func (r row) label() string {
	if r.Metric == "throughput" {
		return r.Work
	}
	label := r.Work + ": " + r.Metric
	const most = 58
	if runes := []rune(label); len(runes) > most {
		label = string(runes[:most-1]) + "…"
	}
	return label
}
