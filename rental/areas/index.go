package areas

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/peterstace/simplefeatures/rtree"

	"motorpool/rental"
	"motorpool/telematics"
)

// Placed is an area with its shape, as it is on record.
type Placed struct {
	rental.Area
	Shape   Shape
	Version uuid.UUID // another one after each change
	Changed time.Time
}

// Index finds the areas of one agency that contain a position. It never changes, so that it is safe
// for concurrent use without a lock.
type Index struct {
	areas []Placed
	tree  *rtree.RTree
	ends  rental.AreaKind
}

// NewIndex returns an index of areas, which are by their names.
func NewIndex(areas map[string]Placed) *Index {
	x := &Index{areas: slices.Collect(maps.Values(areas))}
	boxes := make([]rtree.BulkItem, len(x.areas))
	for i, a := range x.areas {
		boxes[i].RecordID = i
		boxes[i].Box, _ = a.Shape.polygons.Envelope().AsBox()
		if a.Kind == rental.AreaEndOnly || a.Kind == rental.AreaOperating && x.ends == "" {
			x.ends = a.Kind
		}
	}
	x.tree = rtree.BulkLoad(boxes)
	return x
}

// At returns the areas that contain a position, by name, and the kind of those in which a rental
// may end; empty: there is none.
func (x *Index) At(at telematics.Position) (in []rental.Area, ends rental.AreaKind) {
	here := rtree.Box{MinX: at.Longitude, MaxX: at.Longitude, MinY: at.Latitude, MaxY: at.Latitude}
	_ = x.tree.RangeSearch(here, func(i int) error {
		if x.areas[i].Shape.Contains(at) {
			in = append(in, x.areas[i].Area)
		}
		return nil
	})
	slices.SortFunc(in, func(a, b rental.Area) int { return strings.Compare(a.Name, b.Name) })
	return in, x.ends
}
