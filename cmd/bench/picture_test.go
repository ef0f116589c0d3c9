package main

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var measured = []curve{
	{"MQTT floor", []point{{1, 0.31, 0.7}, {4, 0.42, 1.1}, {16, 0.9, 2.2}, {64, 2.8, 6.9}, {256, 9.2, 22}}},
	{"fair floor", []point{{1, 0.52, 1.2}, {4, 0.71, 1.8}, {16, 1.5, 3.6}, {64, 4.6, 10.8}, {256, 17.3, 38}}},
	{"Motorpool", []point{{1, 1.5, 4.1}, {4, 2.1, 5.2}, {16, 4.3, 11}, {64, 15.2, 34}, {256, 61, 148}}},
}

// picture is an SVG as its reader sees it. Its shapes stand in one group, whose origin is at the bottom left.
type picture struct {
	Group struct {
		Texts  []label  `xml:"text"`
		Turned []string `xml:"g>text"`
		Paths  []struct {
			Style string `xml:"style,attr"`
			Shape string `xml:"d,attr"`
		} `xml:"path"`
	} `xml:"g"`
}

type label struct {
	Y     float64 `xml:"y,attr"` // downwards
	Style string  `xml:"style,attr"`
	Says  string  `xml:",chardata"`
}

func drawn(t *testing.T, curves []curve, caption string) (picture, []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "latency.svg")
	if err := drawLatency(path, curves, caption); err != nil {
		t.Fatal(err)
	}
	svg, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var p picture
	if err := xml.Unmarshal(svg, &p); err != nil {
		t.Fatal(err)
	}
	return p, svg
}

// texts are all that the picture says.
func (p picture) texts() []string {
	says := slices.Clone(p.Group.Turned)
	for _, text := range p.Group.Texts {
		says = append(says, text.Says)
	}
	return says
}

// paths are where the shapes with all parts of a style begin: how far right, and how far up.
func (p picture) paths(t *testing.T, parts ...string) (begin [][2]float64) {
	t.Helper()
	for _, path := range p.Group.Paths {
		if slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(path.Style, part) }) {
			continue
		}
		var x, y float64
		if _, err := fmt.Sscanf(path.Shape, "M%f,%f", &x, &y); err != nil {
			t.Fatalf("%s: %v", path.Shape, err)
		}
		begin = append(begin, [2]float64{x, y})
	}
	return begin
}

func TestAPictureNamesEachLineAxisAndTick(t *testing.T) {
	p, _ := drawn(t, measured, "a machine & <a day>")
	says := p.texts()
	for _, want := range []string{
		"Latency of one command against commands in flight", "a machine & <a day>", "commands in flight", "milliseconds",
		"MQTT floor p50", "MQTT floor p99", "fair floor p50", "fair floor p99", "Motorpool p50", "Motorpool p99",
		"1", "4", "16", "64", "256", "0.2", "0.5", "2", "5", "10", "20", "50", "100", "200",
	} {
		if !slices.Contains(says, want) {
			t.Errorf("%q is not among %q", want, says)
		}
	}
}

func TestAPictureMarksEachPoint(t *testing.T) {
	p, _ := drawn(t, measured, "")
	for i, colour := range []string{"#009E73", "#0072B2", "#D55E00"} {
		marks := p.paths(t, "fill:"+colour)
		if len(marks) != len(measured[i].Points) {
			t.Fatalf("%s has %d marks", measured[i].Name, len(marks))
		}
		for j := range marks[1:] {
			if marks[j+1][0] <= marks[j][0] || marks[j+1][1] <= marks[j][1] {
				t.Errorf("%s goes from %v to %v", measured[i].Name, marks[j], marks[j+1])
			}
		}
	}
}

func TestThe99thPercentileIsDashedAndAboveTheMedian(t *testing.T) {
	p, _ := drawn(t, measured, "")
	for i, colour := range []string{"#009E73", "#0072B2", "#D55E00"} {
		solid, dashed := p.paths(t, "stroke:"+colour, "stroke-width:1.75"), p.paths(t, "stroke:"+colour, "stroke-dasharray:5,3")
		if len(solid) != 1 || len(dashed) != 1 || dashed[0][0] != solid[0][0] || dashed[0][1] <= solid[0][1] {
			t.Errorf("%s: solid from %v, dashed from %v", measured[i].Name, solid, dashed)
		}
	}
	var names []string // downwards
	slices.SortFunc(p.Group.Texts, func(a, b label) int { return cmp.Compare(a.Y, b.Y) })
	for _, text := range p.Group.Texts {
		if strings.HasSuffix(text.Says, " p50") || strings.HasSuffix(text.Says, " p99") {
			names = append(names, text.Says)
		}
	}
	want := []string{"Motorpool p99", "Motorpool p50", "fair floor p99", "MQTT floor p99", "fair floor p50", "MQTT floor p50"}
	if !slices.Equal(names, want) {
		t.Errorf("from above: %q, want %q", names, want)
	}
}

func TestNamesOfLinesThatEndTogetherStandApart(t *testing.T) {
	together := []point{{1, 0.3, 0.31}, {1024, 9, 9.01}}
	p, _ := drawn(t, []curve{{"a", together}, {"b", together}, {"c", together}}, "")
	var heights []float64
	for _, text := range p.Group.Texts {
		if strings.HasSuffix(text.Says, " p50") || strings.HasSuffix(text.Says, " p99") {
			heights = append(heights, text.Y)
		}
	}
	slices.Sort(heights)
	if len(heights) != 6 {
		t.Fatalf("%d names", len(heights))
	}
	for i := range heights[1:] {
		if gap := heights[i+1] - heights[i]; math.Abs(gap-float64(endHeight)) > 0.1 {
			t.Errorf("%.2f between two names, want %v", gap, endHeight)
		}
	}
}

func TestOnePointIsAPicture(t *testing.T) {
	p, _ := drawn(t, []curve{{"alone", []point{{1, 1, 1}}}}, "")
	if marks := p.paths(t, "fill:#009E73"); len(marks) != 1 {
		t.Errorf("%d marks", len(marks))
	}
}

func TestTheSamePointsGiveTheSameSmallFile(t *testing.T) {
	_, first := drawn(t, measured, "today")
	_, second := drawn(t, measured, "today")
	if string(first) != string(second) {
		t.Error("two pictures of the same points differ")
	}
	if len(first) > 60_000 {
		t.Errorf("%d bytes", len(first))
	}
}

func TestTextIsLegibleWithoutTheFontItWasMeasuredIn(t *testing.T) {
	p, _ := drawn(t, measured, "")
	for _, text := range p.Group.Texts {
		if !strings.Contains(text.Style, "Arial,Helvetica,sans-serif") {
			t.Errorf("%q has %s", text.Says, text.Style)
		}
	}
}

func TestWhatHasNoPlaceInAPictureIsRefused(t *testing.T) {
	for name, curves := range map[string][]curve{
		"no curve":          nil,
		"no points":         {measured[0], {Name: "empty"}},
		"too many curves":   {measured[0], measured[1], measured[2], measured[0]},
		"no latency":        {{"zero", []point{{1, 0, 1}}}},
		"nothing in flight": {{"idle", []point{{0, 1, 1}}}},
		"not a number":      {{"odd", []point{{1, 1, math.NaN()}}}},
		"for ever":          {{"odd", []point{{1, 1, math.Inf(1)}}}},
	} {
		path := filepath.Join(t.TempDir(), "latency.svg")
		if err := drawLatency(path, curves, ""); err == nil {
			t.Errorf("%s: drawn", name)
		}
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s: there is a file", name)
		}
	}
}
