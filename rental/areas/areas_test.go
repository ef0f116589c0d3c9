//go:build !race

// These tests compute, in one goroutine each: with the race detector they take six times as long.

package areas

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/telematics"
)

func parse(t *testing.T, text string) Shape {
	t.Helper()
	shape, err := ParseShape("geometry", []byte(text))
	require.NoError(t, err)
	return shape
}

const square = `[[11,48],[12,48],[12,49],[11,49],[11,48]]`

func TestShape_ContainsItsInsideAndItsBorder(t *testing.T) {
	for _, c := range []struct {
		name, geometry string
		inside         [][2]float64 // longitude, latitude
		outside        [][2]float64
	}{
		{
			"polygon", `{"type":"Polygon","coordinates":[` + square + `]}`,
			[][2]float64{{11.5, 48.5}, {11, 48}, {12, 48.5}, {11.5, 49}}, [][2]float64{{10.99999, 48.5}, {48.5, 11.5}, {11.5, 49.00001}},
		},
		{
			"clockwise", `{"type":"Polygon","coordinates":[[[11,48],[11,49],[12,49],[12,48],[11,48]]]}`,
			[][2]float64{{11.5, 48.5}}, [][2]float64{{12.5, 48.5}},
		},
		{
			"hole", `{"type":"Polygon","coordinates":[` + square + `,[[11.4,48.4],[11.6,48.4],[11.6,48.6],[11.4,48.6],[11.4,48.4]]]}`,
			[][2]float64{{11.2, 48.5}, {11.4, 48.5}}, [][2]float64{{11.5, 48.5}},
		},
		{
			"several", `{"type":"MultiPolygon","coordinates":[[` + square + `],[[[13,48],[14,48],[13.5,49],[13,48]]]]}`,
			[][2]float64{{11.5, 48.5}, {13.5, 48.5}}, [][2]float64{{12.5, 48.5}},
		},
		{
			"both sides of the antimeridian",
			`{"type":"MultiPolygon","coordinates":[[[[179,-17],[180,-17],[180,-16],[179,-16],[179,-17]]],
				[[[-180,-17],[-179,-17],[-179,-16],[-180,-16],[-180,-17]]]]}`,
			[][2]float64{{179.5, -16.5}, {-179.5, -16.5}, {180, -16.5}, {-180, -16.5}}, [][2]float64{{178.9, -16.5}, {0, -16.5}},
		},
		{
			"feature with altitudes",
			`{"type":"Feature","properties":null,
				"geometry":{"type":"Polygon","coordinates":[[[11,48,500],[12,48,500],[12,49,500],[11,48,500]]]}}`,
			[][2]float64{{11.9, 48.5}}, [][2]float64{{11.1, 48.5}},
		},
	} {
		shape := parse(t, c.geometry)
		stored, err := json.Marshal(shape)
		require.NoError(t, err)
		again, err := Stored(stored)
		require.NoError(t, err)
		for _, s := range []Shape{shape, again} {
			for _, p := range c.inside {
				if !s.Contains(telematics.Position{Longitude: p[0], Latitude: p[1]}) {
					t.Errorf("%s: %v is outside", c.name, p)
				}
			}
			for _, p := range c.outside {
				if s.Contains(telematics.Position{Longitude: p[0], Latitude: p[1]}) {
					t.Errorf("%s: %v is inside", c.name, p)
				}
			}
		}
	}
	if (Shape{}).Contains(telematics.Position{}) {
		t.Error("no shape contains something")
	}
}

func polygon(rings ...string) string {
	return `{"type":"Polygon","coordinates":[` + strings.Join(rings, ",") + `]}`
}

func TestParseShape_SaysWhichRingOrPositionIsWrong(t *testing.T) {
	// With the first again that is one too many.
	many := circle(MaxPoints, telematics.Position{Latitude: 48, Longitude: 11}, 0.1)
	nested := strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)
	for _, c := range []struct{ name, text, field, message string }{
		{"nothing", ``, "geometry", "want a GeoJSON object"},
		{"null", `null`, "geometry.type", "want Polygon"},
		{"a list", `[]`, "geometry", "want a GeoJSON object"},
		{"a point", `{"type":"Point","coordinates":[11,48]}`, "geometry.type", "want Polygon, MultiPolygon or Feature"},
		{"a collection", `{"type":"FeatureCollection","features":[]}`, "geometry.type", "one area for each"},
		{"a feature without geometry", `{"type":"Feature","geometry":null}`, "geometry.geometry.type", "want Polygon"},
		{"no rings", polygon(), "geometry.coordinates", "want a list of rings"},
		{"no coordinates", `{"type":"Polygon"}`, "geometry.coordinates", "want a list of rings"},
		{"an empty ring", polygon(`[]`), "geometry.coordinates[0]", "want a list of positions"},
		{"no polygons", `{"type":"MultiPolygon","coordinates":[]}`, "geometry.coordinates", "want a list of polygons"},
		{
			"a polygon as several", `{"type":"MultiPolygon","coordinates":[` + square + `]}`,
			"geometry.coordinates[0][0][0]", "want a position",
		},
		{"several as a polygon", polygon(`[` + square + `]`), "geometry.coordinates[0][0]", "want a position"},
		{"not closed", polygon(`[[11,48],[12,48],[12,49],[11,49]]`), "geometry.coordinates[0]", "is not closed: its last position [11 49]"},
		{"a line", polygon(`[[11,48],[12,48],[11,48]]`), "geometry.coordinates[0]", "at least 4 positions"},
		{"a flat triangle", polygon(`[[11,48],[12,48],[13,48],[11,48]]`), "geometry.coordinates[0]", "crosses or touches itself"},
		{"a dot", polygon(`[[11,48],[11,48],[11,48],[11,48]]`), "geometry.coordinates[0]", "only one distinct"},
		{"a bow-tie", polygon(`[[11,48],[12,49],[12,48],[11,49],[11,48]]`), "geometry.coordinates[0]", "crosses or touches itself"},
		{"a spike", polygon(`[[11,48],[12,48],[13,48],[12,48],[12,49],[11,48]]`), "geometry.coordinates[0]", "crosses or touches itself"},
		{"a text", polygon(`[[11,48],[12,"48"],[12,49],[11,48]]`), "geometry.coordinates[0][1]", "want a position"},
		{"no number", polygon(`[[11,48],[12,null],[12,49],[11,48]]`), "geometry.coordinates[0][1]", "want a position"},
		{"one number", polygon(`[[11,48],[12],[12,49],[11,48]]`), "geometry.coordinates[0][1]", "want a position"},
		{"four numbers", polygon(`[[11,48],[12,48,0,0],[12,49],[11,48]]`), "geometry.coordinates[0][1]", "want a position"},
		{"infinite", polygon(`[[11,48],[1e999,48],[12,49],[11,48]]`), "geometry.coordinates[0][1]", "want a position"},
		{"not JSON", polygon(`[[11,48],[NaN,48],[12,49],[11,48]]`), "geometry", "want a GeoJSON object"},
		{
			"latitude first", polygon(`[[35,139],[36,139],[36,140],[35,139]]`),
			"geometry.coordinates[0][0]", "latitude 139: want -90 to 90; a position is [longitude, latitude]",
		},
		{"around the world", polygon(`[[181,48],[182,48],[182,49],[181,48]]`), "geometry.coordinates[0][0]", "longitude 181"},
		{"over the antimeridian", polygon(`[[179,0],[-179,0],[-179,1],[179,0]]`), "geometry.coordinates[0][1]", "MultiPolygon"},
		{
			"a hole outside", polygon(square, `[[13,48],[14,48],[14,49],[13,48]]`),
			"geometry.coordinates", "interior ring outside of exterior ring",
		},
		{"the border twice", polygon(square, square), "geometry.coordinates", "rings intersect at multiple points"},
		{
			"a hole over the border", polygon(square, `[[11.5,48.5],[12.5,48.5],[12.5,48.6],[11.5,48.5]]`),
			"geometry.coordinates", "intersect",
		},
		{
			"polygons that overlap",
			`{"type":"MultiPolygon","coordinates":[[` + square + `],[[[11.5,48.5],[12.5,48.5],[12.5,49.5],[11.5,48.5]]]]}`,
			"geometry.coordinates", "the polygons overlap",
		},
		{
			"one polygon twice", `{"type":"MultiPolygon","coordinates":[[` + square + `],[` + square + `]]}`,
			"geometry.coordinates", "the polygons overlap",
		},
		{"too many positions", many, fmt.Sprintf("geometry.coordinates[0][%d]", MaxPoints), "at most 5000"},
		{"too many bytes", strings.Repeat(" ", MaxBytes) + "{}", "geometry", "want at most 262144"},
		{"deep", `{"type":"Polygon","coordinates":` + nested + `}`, "geometry", "want a GeoJSON object"},
		{"less deep", `{"type":"Polygon","coordinates":` + nested[15_000:25_000] + `}`, "geometry.coordinates[0][0]", "want a position"},
	} {
		_, err := ParseShape("geometry", []byte(c.text))
		var field *rental.FieldError
		if !errors.As(err, &field) || field.Field != c.field || !strings.Contains(field.Message, c.message) || len(field.Message) > 300 {
			t.Errorf("%s: %v; want %s … %s", c.name, err, c.field, c.message)
		}
	}
}

// A comb with slanted teeth has lines with overlapping boxes, which makes checks slow.
func TestParseShape_IsSoonDoneWithAnything(t *testing.T) {
	const teeth = MaxPoints/2 - 2 // as many as fit
	comb := func(last string) string {
		var b strings.Builder
		b.WriteString(`{"type":"Polygon","coordinates":[[[0,0]`)
		for i := range teeth {
			fmt.Fprintf(&b, ",[%.6f,10],[%.6f,0.1]", 10+float64(i)*0.001, 0.2+float64(i)*0.001)
		}
		b.WriteString(last + `,[0,0]]]}`)
		return b.String()
	}
	for name, text := range map[string]string{
		"a comb": comb(",[20,0]"), "a comb that crosses itself at its end": comb(",[20,0],[1,0.5]"),
		"a million positions": circle(1_000_000, telematics.Position{}, 10),
	} {
		begun := time.Now()
		_, err := ParseShape("geometry", []byte(text))
		// A slow machine with the race detector needs some.
		if took := time.Since(begun); took > time.Minute {
			t.Errorf("%s: %v (%v)", name, took, err)
		}
		t.Log(name, time.Since(begun), err)
	}
	// Each of them would be read as often as there are Features around it.
	const feature = `{"type":"Feature","geometry":`
	nested := strings.Repeat(feature, 8500) + `{}` + strings.Repeat("}", 8500)
	_, err := ParseShape("geometry", []byte(nested))
	var wrong *rental.FieldError
	if !errors.As(err, &wrong) || wrong.Field != "geometry.geometry.type" {
		t.Errorf("a Feature in a Feature: %v", err)
	}
}

func TestParseShape_LeavesOutPointsWithinTwoMetres(t *testing.T) {
	const metre = 1 / 111_000.0
	jagged := func(metres float64) string {
		var b strings.Builder
		b.WriteString(`{"type":"Polygon","coordinates":[[`)
		for i := range 100 {
			fmt.Fprintf(&b, "[%.7f,%.7f],", 11+float64(i)*0.001, 48+float64(i%2)*metres*metre)
		}
		b.WriteString(`[11.1,49],[11,49],[11,48]]]}`)
		return b.String()
	}
	if n := parse(t, jagged(1.5)).Points(); n > 6 {
		t.Errorf("a border that is uneven by 1.5 m has %d points", n)
	}
	if n := parse(t, jagged(5)).Points(); n != 103 {
		t.Errorf("a border that is uneven by 5 m has %d points, want 103", n)
	}
	if n := parse(t, circle(8, telematics.Position{Latitude: 48, Longitude: 11}, metre)).Points(); n != 9 {
		t.Errorf("an area of 1 m has %d points, want all 9", n)
	}
	// Simplified again, it stays as it is: an area can be read and written without a change.
	once, err := json.Marshal(parse(t, circle(1000, telematics.Position{Latitude: 48, Longitude: 11}, 0.05)))
	require.NoError(t, err)
	if twice, err := json.Marshal(parse(t, string(once))); err != nil || string(twice) != string(once) {
		t.Errorf("simplified twice: %s, %v; want %s", twice, err, once)
	}
}

func TestIndex_FindsAreasByPosition(t *testing.T) {
	place := func(name string, kind rental.AreaKind, rings string) (string, Placed) {
		return name, Placed{Area: rental.Area{Name: name, Kind: kind}, Shape: parse(t, polygon(rings))}
	}
	all := map[string]Placed{}
	for _, a := range []struct {
		name string
		kind rental.AreaKind
		ring string
	}{
		{"town", rental.AreaOperating, square},
		{"station", rental.AreaNoParking, `[[11.4,48.4],[11.6,48.4],[11.6,48.6],[11.4,48.6],[11.4,48.4]]`},
		{"airport", rental.AreaEndOnly, `[[13,48],[14,48],[14,49],[13,48]]`},
	} {
		name, placed := place(a.name, a.kind, a.ring)
		all[name] = placed
	}
	x := NewIndex(all)
	for _, c := range []struct {
		at   telematics.Position
		want string
	}{
		{telematics.Position{Latitude: 48.5, Longitude: 11.5}, "[{station no_parking} {town operating}]"},
		{telematics.Position{Latitude: 48.1, Longitude: 11.1}, "[{town operating}]"},
		{telematics.Position{Latitude: 48.1, Longitude: 13.9}, "[{airport end_only}]"},
		{telematics.Position{Latitude: 48.9, Longitude: 13.1}, "[]"},
		{telematics.Position{}, "[]"},
	} {
		if in, ends := x.At(c.at); fmt.Sprint(in) != c.want || ends != rental.AreaEndOnly {
			t.Errorf("at %v: %v, %v; want %s", c.at, in, ends, c.want)
		}
	}
	delete(all, "airport")
	if _, ends := NewIndex(all).At(telematics.Position{}); ends != rental.AreaOperating {
		t.Errorf("without an area of ends alone, a rental ends in %q areas", ends)
	}
	delete(all, "town")
	if in, ends := NewIndex(all).At(telematics.Position{Latitude: 48.5, Longitude: 11.5}); len(in) != 1 || ends != "" {
		t.Errorf("with an area without parking alone: %v, %v", in, ends)
	}
	if in, ends := NewIndex(nil).At(telematics.Position{}); in != nil || ends != "" {
		t.Errorf("without areas: %v, %v", in, ends)
	}
}

// circle returns the GeoJSON of an uneven circle of n different points.
func circle(n int, at telematics.Position, radius float64) string {
	points := make([]string, n+1)
	for i := range n {
		angle, r := 2*math.Pi*float64(i)/float64(n), radius*(1-0.1*float64(i%2))
		points[i] = fmt.Sprintf("[%.7f,%.7f]", at.Longitude+r*math.Cos(angle), at.Latitude+r*math.Sin(angle))
	}
	points[n] = points[0]
	return `{"type":"Polygon","coordinates":[[` + strings.Join(points, ",") + `]]}`
}

// town returns 200 areas of 100 points: the town, and blocks in it.
func town(tb testing.TB) map[string]Placed {
	tb.Helper()
	placed := map[string]Placed{}
	for i := range 200 {
		at, radius := telematics.Position{Latitude: 48 + 0.01*float64(i/20), Longitude: 11 + 0.01*float64(i%20)}, 0.006
		if i == 0 {
			at, radius = telematics.Position{Latitude: 48.05, Longitude: 11.1}, 0.2
		}
		shape, err := ParseShape("geometry", []byte(circle(100, at, radius)))
		require.NoError(tb, err)
		name := fmt.Sprint("area", i)
		placed[name] = Placed{Area: rental.Area{Name: name, Kind: rental.AreaNoParking}, Shape: shape}
	}
	return placed
}

// The index and the simple way agree.
func TestIndex_FindsWhatASearchOfAllFinds(t *testing.T) {
	all := town(t)
	x := NewIndex(all)
	for i := range 300 {
		at := telematics.Position{Latitude: 47.9 + 0.0143*float64(i%20), Longitude: 10.9 + 0.0271*float64(i/20)}
		want := 0
		for _, a := range all {
			if a.Shape.Contains(at) {
				want++
			}
		}
		if in, _ := x.At(at); len(in) != want {
			t.Fatalf("at %v: %v, want %d areas", at, in, want)
		}
	}
}

// FuzzParseShape: no input panics, and what is accepted is accepted again as it was stored.
func FuzzParseShape(f *testing.F) {
	f.Add(polygon(square))
	f.Add(`{"type":"MultiPolygon","coordinates":[[` + square + `]]}`)
	f.Add(circle(20, telematics.Position{Latitude: 48, Longitude: 11}, 1))
	f.Fuzz(func(t *testing.T, text string) {
		shape, err := ParseShape("geometry", []byte(text))
		if err != nil {
			return
		}
		stored, err := json.Marshal(shape)
		require.NoError(t, err)
		if _, err := ParseShape("geometry", stored); err != nil {
			t.Errorf("%s was accepted as %s, which is refused: %v", text, stored, err)
		}
	})
}
