package main

import (
	"bytes"
	"errors"
	"fmt"
	"image/color"
	"os"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// curve is how the latency of one thing grows with the commands that are in flight.
type curve struct {
	Name   string
	Points []point // by commands in flight, ascending
}

// point is the latency, in milliseconds, with a number of commands in flight.
type point struct {
	InFlight int
	P50, P99 float64
}

// A pen is how a curve is drawn. The colours are of Okabe and Ito's palette, which people of any colour vision tell apart; the
// shapes of the marks do the same in black and white.
type pen struct {
	colour color.Color
	mark   draw.GlyphDrawer
}

var pens = []pen{
	{color.RGBA{R: 0x00, G: 0x9e, B: 0x73, A: 0xff}, draw.CircleGlyph{}},
	{color.RGBA{R: 0x00, G: 0x72, B: 0xb2, A: 0xff}, draw.BoxGlyph{}},
	{color.RGBA{R: 0xd5, G: 0x5e, B: 0x00, A: 0xff}, draw.PyramidGlyph{}},
}

var (
	ink  = color.Gray{Y: 0x24}
	grey = color.Gray{Y: 0x66}
	pale = color.Gray{Y: 0xdd}
)

// 800 × 500 pixels, of 3/4 pt each.
const (
	pictureWidth  vg.Length = 600
	pictureHeight vg.Length = 375
)

// drawLatency draws the curves into an SVG file: solid for the median, dashed for the 99th percentile, both axes logarithmic. The
// caption stands below, its lines as they are. The same input gives the same bytes.
func drawLatency(path string, curves []curve, caption string) error {
	if len(curves) == 0 {
		return errors.New("no curve to draw")
	}
	if len(curves) > len(pens) {
		return fmt.Errorf("%d curves to draw with %d pens", len(curves), len(pens))
	}
	p := emptyPlot()
	var names lineEnds
	for i, c := range curves {
		p50, p99, err := c.lines()
		if err != nil {
			return fmt.Errorf("draw %s: %w", c.Name, err)
		}
		pens[i].draw(p, p50, p99)
		names = append(names,
			lineEnd{c.Name + " p99", pens[i].colour, p99.XYs[len(p99.XYs)-1]},
			lineEnd{c.Name + " p50", pens[i].colour, p50.XYs[len(p50.XYs)-1]})
	}
	p.Add(names)
	spanAxes(p, curves)

	svg := vgsvg.New(pictureWidth, pictureHeight)
	page := draw.New(svg)
	page.SetColor(color.White) // GitHub's own page may be dark
	page.Fill(page.Path())
	page = draw.Crop(page, 14, -14, 10, -12)
	small := written(8, grey)
	page.FillText(small, page.Min, caption)
	p.Draw(draw.Crop(page, 0, 0, small.Height(caption)+10, 0))
	return writeSVG(path, svg)
}

// lines are the medians and the 99th percentiles of a curve.
func (c curve) lines() (p50, p99 *plotter.Line, err error) {
	if len(c.Points) == 0 {
		return nil, nil, errors.New("no points")
	}
	var medians, tails plotter.XYs
	for _, at := range c.Points {
		if at.InFlight <= 0 || at.P50 <= 0 || at.P99 <= 0 {
			return nil, nil, fmt.Errorf("%+v has no place on logarithmic axes", at)
		}
		medians = append(medians, plotter.XY{X: float64(at.InFlight), Y: at.P50})
		tails = append(tails, plotter.XY{X: float64(at.InFlight), Y: at.P99})
	}
	if p50, err = plotter.NewLine(medians); err != nil {
		return nil, nil, err
	}
	p99, err = plotter.NewLine(tails)
	return p50, p99, err
}

// draw adds the lines of one curve to a plot.
func (n pen) draw(p *plot.Plot, p50, p99 *plotter.Line) {
	p50.LineStyle = draw.LineStyle{Color: n.colour, Width: 1.75}
	p99.LineStyle = draw.LineStyle{Color: n.colour, Width: 1.25, Dashes: []vg.Length{5, 3}}
	marks := &plotter.Scatter{XYs: p50.XYs, GlyphStyle: draw.GlyphStyle{Color: n.colour, Shape: n.mark, Radius: 3.5}}
	p.Add(p99, p50, marks)
}

// emptyPlot is the plot before its curves.
func emptyPlot() *plot.Plot {
	p := plot.New()
	p.Title.Text = "Latency of one command against commands in flight"
	p.Title.TextStyle = written(13, ink)
	p.Title.TextStyle.Font.Weight = xfont.WeightBold
	p.Title.TextStyle.XAlign, p.Title.TextStyle.YAlign = draw.XCenter, draw.YTop
	p.Title.Padding = 12
	p.X.Label.Text, p.Y.Label.Text = "commands in flight", "milliseconds"
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Scale = plot.LogScale{}
		axis.Padding = 0
		axis.Color, axis.Tick.Color = grey, grey
		axis.Tick.Length = 4
		axis.Label.Padding = 6
		axis.Label.TextStyle.Font, axis.Label.TextStyle.Color = written(10, ink).Font, ink
		axis.Tick.Label.Font, axis.Tick.Label.Color = written(9, ink).Font, ink
	}
	grid := plotter.NewGrid()
	grid.Vertical = draw.LineStyle{Color: pale, Width: 0.5}
	grid.Horizontal = grid.Vertical
	p.Add(grid)
	return p
}

// written is text of a size, in the font that it is measured in.
func written(size vg.Length, colour color.Color) text.Style {
	return text.Style{Color: colour, Font: font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}, Handler: plot.DefaultTextHandler}
}

// writeSVG writes a picture with its text in whatever the reader has of the fonts that are as wide as the measured one.
func writeSVG(path string, svg *vgsvg.Canvas) error {
	var b bytes.Buffer
	if _, err := svg.WriteTo(&b); err != nil {
		return err
	}
	return os.WriteFile(path, bytes.ReplaceAll(b.Bytes(),
		[]byte("font-family:Liberation Sans;"), []byte("font-family:'Liberation Sans',Arial,Helvetica,sans-serif;")), 0o644)
}
