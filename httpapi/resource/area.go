package resource

import "motorpool/rental/areas"

// Area is an area of an agency.
type Area struct {
	Name      string      `json:"name"`
	Kind      string      `json:"kind"`
	Geometry  areas.Shape `json:"geometry"`
	Points    int         `json:"points"`
	ChangedAt string      `json:"changed_at"`
}

// NewArea returns an area.
func NewArea(a areas.Placed) Area {
	return Area{
		Name: a.Name, Kind: string(a.Kind), Geometry: a.Shape, Points: a.Shape.Points(), ChangedAt: Timestamp(a.Changed),
	}
}
