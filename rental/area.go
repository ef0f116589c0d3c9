package rental

import (
	"context"
	"fmt"
	"regexp"

	"motorpool/telematics"
)

// Area is a named part of the map where an agency lets its clients drive, park or return vehicles,
// or does not. Its geometry is in package areas.
type Area struct {
	Name string // unique in its agency
	Kind AreaKind
}

// AreaKind is what an area means for a vehicle in it.
type AreaKind string

// Kinds of areas.
const (
	AreaOperating AreaKind = "operating" // rentals may end here
	// No rental may end here, whatever other area it is in.
	AreaNoParking AreaKind = "no_parking"
	// Where an agency has one, rentals end only in areas of this kind.
	AreaEndOnly AreaKind = "end_only"
)

// AreaName is what the name of an area looks like.
var AreaName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// AreaKinds are all kinds.
var AreaKinds = []AreaKind{AreaOperating, AreaNoParking, AreaEndOnly}

// Names of activities.
const (
	AreaPut    = "area.put"
	AreaRemove = "area.remove"
)

// NoSuchArea is the error for an area that is not on record.
func NoSuchArea(agency telematics.AgencyID, name string) *telematics.Error {
	return &telematics.Error{Code: AreaNotFound, Message: fmt.Sprintf("There is no area %s of agency %d.", name, agency)}
}

// Areas finds areas by position.
type Areas interface {
	// At returns the areas of an agency that contain a position, by name; a position on the border
	// is inside. It also returns the kind of areas in which rentals of the agency end, operating or
	// end_only; empty: it has none, and they end anywhere but in one without parking. It is safe
	// for concurrent use, and needs no query most of the time.
	At(ctx context.Context, agency telematics.AgencyID, at telematics.Position) (in []Area, ends AreaKind, err error)
}
