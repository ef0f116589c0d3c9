package main

import (
	"cmp"
	"image/color"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// lineEnd is where a line of a plot ends, and the name that is written beside it.
type lineEnd struct {
	name   string
	colour color.Color
	at     plotter.XY
}

// lineEnds names lines at the right of a plot, so that nobody has to look back and forth to a legend.
type lineEnds []lineEnd

const (
	endSize   vg.Length = 9
	endHeight vg.Length = 12 // from one name to the next
	leader    vg.Length = 16 // of the stroke from a line to its name
)

// Plot writes the names, each as near to its line as the others let it.
func (e lineEnds) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	e = slices.Clone(e)
	slices.SortStableFunc(e, func(a, b lineEnd) int { return cmp.Compare(b.at.Y, a.at.Y) })
	var heights []vg.Length
	for _, one := range e {
		heights = append(heights, -y(one.at.Y)) // downwards
	}
	for i, height := range apart(heights, endHeight) {
		from := vg.Point{X: x(e[i].at.X) + 5, Y: y(e[i].at.Y)}
		to := vg.Point{X: c.Max.X + leader, Y: -height}
		c.StrokeLines(draw.LineStyle{Color: e[i].colour, Width: 0.5}, []vg.Point{from, to})
		style := written(endSize, e[i].colour)
		style.YAlign = draw.YCenter
		c.FillText(style, vg.Point{X: to.X + 3, Y: to.Y + style.FontExtents().Descent}, e[i].name)
	}
}

// GlyphBoxes reserves the room at the right.
func (e lineEnds) GlyphBoxes(*plot.Plot) []plot.GlyphBox {
	var boxes []plot.GlyphBox
	for _, one := range e {
		width := leader + 3 + written(endSize, one.colour).Width(one.name)
		boxes = append(boxes, plot.GlyphBox{X: 1, Rectangle: vg.Rectangle{Max: vg.Point{X: width}}})
	}
	return boxes
}

// apart moves ascending positions until there is a gap between each two, and none further than needed: those that crowd spread
// evenly around the middle of where they were.
func apart(positions []vg.Length, gap vg.Length) []vg.Length {
	type crowd struct {
		middle vg.Length
		size   vg.Length
	}
	height := func(c crowd) vg.Length { return c.size * gap }
	var crowds []crowd
	for _, p := range positions {
		crowds = append(crowds, crowd{p, 1})
		for n := len(crowds); n > 1; n-- {
			a, b := crowds[n-2], crowds[n-1]
			if b.middle-a.middle >= (height(a)+height(b))/2 {
				break
			}
			crowds = append(crowds[:n-2], crowd{(a.middle*a.size + b.middle*b.size) / (a.size + b.size), a.size + b.size})
		}
	}
	var moved []vg.Length
	for _, c := range crowds {
		for i := range int(c.size) {
			moved = append(moved, c.middle-height(c)/2+(vg.Length(i)+0.5)*gap)
		}
	}
	return moved
}
