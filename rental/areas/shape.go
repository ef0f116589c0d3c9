package areas

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/peterstace/simplefeatures/geom"

	"motorpool/rental"
	"motorpool/telematics"
)

// Shape is a valid polygon, or several, possibly with holes. The zero value contains nothing.
type Shape struct{ polygons geom.MultiPolygon }

// ParseShape reads a Polygon, a MultiPolygon, or a Feature with one of them, and leaves out points
// without which no border moves by more than a tolerance of about 2 m. Its error is one or several
// *rental.FieldError: their fields are places below the given one, such as
// geometry.coordinates[0][3].
func ParseShape(place string, text []byte) (Shape, error) {
	if len(text) > MaxBytes {
		return Shape{}, wrong(place, "has %d bytes: want at most %d", len(text), MaxBytes)
	}
	o, err := decode(place, text)
	if err == nil && o.Type == "Feature" {
		place += ".geometry"
		o, err = decode(place, o.Geometry) // in which another Feature is not valid
	}
	if err != nil {
		return Shape{}, err
	}
	r := reader{}
	var polygons []geom.Polygon
	coordinates := place + ".coordinates"
	switch o.Type {
	case "Polygon":
		var polygon geom.Polygon
		polygon, err = r.polygon(coordinates, o.Coordinates)
		polygons = []geom.Polygon{polygon}
	case "MultiPolygon":
		polygons, err = each(coordinates, o.Coordinates, "a list of polygons", r.polygon)
	case "FeatureCollection", "GeometryCollection":
		return Shape{}, wrong(place+".type", "is %s: name one area for each part, or use a MultiPolygon", o.Type)
	default:
		return Shape{}, wrong(place+".type", "want Polygon, MultiPolygon or Feature")
	}
	if err != nil {
		return Shape{}, err
	}
	several := geom.NewMultiPolygon(polygons)
	if len(polygons) > 1 {
		if err := several.Validate(); err != nil {
			return Shape{}, wrong(coordinates, "the polygons overlap: %s", innermost(err))
		}
	}
	return Shape{simplified(several)}, nil
}

// object is a geometry, or a Feature with one.
type object struct {
	Type        string          `json:"type"`
	Coordinates json.RawMessage `json:"coordinates"`
	Geometry    json.RawMessage `json:"geometry"`
}

func decode(place string, text []byte) (o object, err error) {
	if json.Unmarshal(text, &o) != nil {
		err = wrong(place, "want a GeoJSON object")
	}
	return o, err
}

func wrong(place, format string, args ...any) error {
	return &rental.FieldError{Field: place, Message: "is not valid: " + fmt.Sprintf(format, args...)}
}

// innermost returns the rule that a geometry breaks, without the indexes, which the place names.
func innermost(err error) error {
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return err
}

// simplified leaves out points, unless that makes the polygons invalid, or one of their rings too
// small.
func simplified(m geom.MultiPolygon) geom.MultiPolygon {
	s, _ := m.Simplify(tolerance, geom.NoValidate{}) // returns no error then
	if s.NumPolygons() != m.NumPolygons() || s.DumpCoordinates().Length() == m.DumpCoordinates().Length() || s.Validate() != nil {
		return m
	}
	for i := range m.NumPolygons() {
		if s.PolygonN(i).NumRings() != m.PolygonN(i).NumRings() {
			return m
		}
	}
	return s
}

// reader reads the coordinates of one geometry.
type reader struct{ points int }

// each reads a list, and names the place of each element.
func each[T any](place string, text json.RawMessage, want string, read func(string, json.RawMessage) (T, error)) ([]T, error) {
	var raw []json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil || len(raw) == 0 {
		return nil, wrong(place, "want %s", want)
	}
	list := make([]T, len(raw))
	for i, element := range raw {
		var err error
		if list[i], err = read(fmt.Sprintf("%s[%d]", place, i), element); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (r *reader) polygon(place string, text json.RawMessage) (geom.Polygon, error) {
	rings, err := each(place, text, "a list of rings: the border, then its holes", r.ring)
	if err != nil {
		return geom.Polygon{}, err
	}
	polygon := geom.NewPolygon(rings)
	err = polygon.Validate()
	if err == nil {
		return polygon, nil
	}
	for i, ring := range rings {
		if !ring.IsSimple() {
			return geom.Polygon{}, wrong(fmt.Sprintf("%s[%d]", place, i), "crosses or touches itself")
		}
	}
	return geom.Polygon{}, wrong(place, "%s", innermost(err))
}

func (r *reader) ring(place string, text json.RawMessage) (geom.LineString, error) {
	points, err := each(place, text, "a list of positions", r.position)
	if err != nil {
		return geom.LineString{}, err
	}
	first, last := points[0], points[len(points)-1]
	if first != last {
		return geom.LineString{}, wrong(
			place, "is not closed: its last position %v is not its first, %v", [2]float64(last), [2]float64(first),
		)
	}
	if len(points) < minRing {
		return geom.LineString{}, wrong(place, "want at least %d positions, of which the last is the first again", minRing)
	}
	floats := make([]float64, 0, 2*len(points))
	for i, p := range points {
		if i > 0 && math.Abs(p[0]-points[i-1][0]) > 180 {
			return geom.LineString{}, wrong(
				fmt.Sprintf("%s[%d]", place, i), "crosses the antimeridian: divide the area there into a MultiPolygon",
			)
		}
		floats = append(floats, p[0], p[1])
	}
	ring := geom.NewLineString(geom.NewSequence(floats, geom.DimXY))
	if err := ring.Validate(); err != nil {
		return geom.LineString{}, wrong(place, "%s", innermost(err))
	}
	return ring, nil
}

// point is a longitude and a latitude, in the order of GeoJSON.
type point [2]float64

func (r *reader) position(place string, text json.RawMessage) (point, error) {
	if r.points++; r.points > MaxPoints {
		return point{}, wrong(place, "is one position too many: an area has at most %d", MaxPoints)
	}
	var numbers []*float64 // nil: null
	if err := json.Unmarshal(text, &numbers); err != nil || len(numbers) < 2 || len(numbers) > 3 || numbers[0] == nil || numbers[1] == nil {
		return point{}, wrong(place, "want a position: [longitude, latitude]")
	}
	p := point{*numbers[0], *numbers[1]}
	switch {
	case math.Abs(p[0]) > 180:
		return point{}, wrong(place, "longitude %g: want -180 to 180", p[0])
	case math.Abs(p[1]) > 90:
		return point{}, wrong(place, "latitude %g: want -90 to 90; a position is [longitude, latitude]", p[1])
	}
	return p, nil
}

// Contains reports whether a position is inside the shape or on its border.
func (s Shape) Contains(at telematics.Position) bool {
	return geom.Intersects(geom.XY{X: at.Longitude, Y: at.Latitude}.AsPoint().AsGeometry(), s.polygons.AsGeometry())
}

// Middle returns the middle of the box around the shape.
func (s Shape) Middle() telematics.Position {
	low, high, _ := s.polygons.Envelope().MinMaxXYs()
	return telematics.Position{Latitude: (low.Y + high.Y) / 2, Longitude: (low.X + high.X) / 2}
}

// Points returns the number of positions of the borders.
func (s Shape) Points() int { return s.polygons.DumpCoordinates().Length() }

// MarshalJSON returns the shape as GeoJSON.
func (s Shape) MarshalJSON() ([]byte, error) {
	if s.polygons.NumPolygons() == 1 {
		return s.polygons.PolygonN(0).MarshalJSON()
	}
	return s.polygons.MarshalJSON()
}

// Stored reads a shape that MarshalJSON has written, and does not check it again. It returns an
// error for what is no such shape.
func Stored(text []byte) (Shape, error) {
	g, err := geom.UnmarshalGeoJSON(text, geom.NoValidate{})
	switch {
	case err != nil:
		return Shape{}, err
	case g.IsPolygon():
		return Shape{g.MustAsPolygon().AsMultiPolygon()}, nil
	case g.IsMultiPolygon():
		return Shape{g.MustAsMultiPolygon()}, nil
	}
	return Shape{}, fmt.Errorf("a %s is no area", g.Type())
}
