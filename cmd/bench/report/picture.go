package report

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"

	"motorpool/cmd/bench/measure"
)

const (
	pictureWidth  = 8 * vg.Inch
	pictureHeight = 5 * vg.Inch
)

// Picture draws the latency of commands by the number in flight, both on logarithmic axes, into an
// SVG file.
func Picture(file string, r *measure.CommandResult) error {
	p := plot.New()
	p.Title.Text = "Latency of one command by commands in flight"
	p.X.Label.Text, p.Y.Label.Text = "commands in flight", "milliseconds"
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.LogTicks{Prec: -1}, plot.LogTicks{Prec: -1}
	p.Legend.Top, p.Legend.Left = true, true
	p.Add(plotter.NewGrid())
	for i, side := range []struct {
		name   string
		rounds func(measure.CommandAt) []measure.Round
	}{
		{"MQTT floor", func(at measure.CommandAt) []measure.Round { return at.Floor }},
		{"fair floor", func(at measure.CommandAt) []measure.Round { return at.Fair }},
		{"Motorpool", func(at measure.CommandAt) []measure.Round { return at.Service }},
	} {
		var p50, p99 plotter.XYs
		for _, at := range r.At {
			if rounds := side.rounds(at); len(rounds) > 0 {
				p50 = append(p50, plotter.XY{X: float64(at.InFlight), Y: measure.Median(measure.Of(rounds, p50Of))})
				p99 = append(p99, plotter.XY{X: float64(at.InFlight), Y: measure.Median(measure.Of(rounds, p99Of))})
			}
		}
		if len(p50) == 0 {
			continue
		}
		for dashes, points := range []plotter.XYs{p50, p99} {
			line, marks, err := plotter.NewLinePoints(points)
			if err != nil {
				return err
			}
			line.Color, marks.Color = plotutil.Color(i), plotutil.Color(i)
			line.Dashes, marks.Shape = plotutil.Dashes(dashes), plotutil.Shape(i)
			p.Add(line, marks)
			p.Legend.Add(side.name+[]string{" p50", " p99"}[dashes], line, marks)
		}
	}
	return p.Save(pictureWidth, pictureHeight, file)
}

func p50Of(r measure.Round) float64 { return r.P50 }
func p99Of(r measure.Round) float64 { return r.P99 }
