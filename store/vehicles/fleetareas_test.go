package vehicles

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/rental/areas"
	stored "motorpool/store/areas"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

const (
	triangle = `{"type": "Polygon", "coordinates": [[[11.5, 48.1], [11.6, 48.1], [11.6, 48.2], [11.5, 48.1]]]}`
	moved    = `{"type": "Polygon", "coordinates": [[[11.4, 48.1], [11.6, 48.1], [11.6, 48.2], [11.4, 48.1]]]}`
)

func withAreas(areas string) string {
	return fmt.Sprintf(`{"agencies": [{"id": 1, "code": "MUC", "name": "Isar Mobility", "areas": %s}]}`, areas)
}

func TestFleetFile_SetsAreas(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	for _, step := range []struct {
		areas  string
		want   []string // that has changed
		record string
	}{
		{
			`{"centre": {"kind": "operating", "geometry": ` + triangle + `},
				"market": {"kind": "no_parking", "geometry": ` + triangle + `}}`,
			[]string{
				"area centre of agency 1: new: kind operating, shape 4 points",
				"area market of agency 1: new: kind no_parking, shape 4 points",
			},
			"centre operating 4, market no_parking 4",
		},
		// The same again changes nothing, and what the file does not name stays.
		{`{"centre": {"kind": "operating", "geometry": ` + triangle + `}}`, nil, "centre operating 4, market no_parking 4"},
		{`{}`, nil, "centre operating 4, market no_parking 4"},
		{
			`{"centre": {"kind": "end_only"}}`, []string{"area centre of agency 1: kind operating → end_only"},
			"centre end_only 4, market no_parking 4",
		},
		{
			`{"centre": {"geometry": {"type": "Feature", "properties": {}, "geometry": ` + moved + `}}}`,
			[]string{"area centre of agency 1: shape 4 points → 4 points, another shape"}, "centre end_only 4, market no_parking 4",
		},
		{
			`{"centre": null, "unknown": null}`,
			[]string{"area centre of agency 1: kind end_only → none", "area centre of agency 1: shape 4 points → none"},
			"market no_parking 4",
		},
		{`null`, []string{"area market of agency 1: kind no_parking → none", "area market of agency 1: shape 4 points → none"}, ""},
	} {
		got := slices.DeleteFunc(change(t, p, withAreas(step.areas)), func(line string) bool { return strings.HasPrefix(line, "agency ") })
		assert.EqualSlices(t, got, step.want, "what %s changed", step.areas)
		list, err := stored.New(p.DB).List(t.Context(), 1, "")
		require.NoError(t, err)
		var names []string
		for _, a := range list {
			names = append(names, fmt.Sprintf("%s %s %d", a.Name, a.Kind, a.Shape.Points()))
		}
		if record := strings.Join(names, ", "); record != step.record {
			t.Errorf("after %s there are %s, want %s", step.areas, record, step.record)
		}
	}
}

func TestFleetFile_NamesEachProblemOfAnArea(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	refused(t, p, withAreas(`[]`), "agencies[0].areas: []: want an object of areas by their names")
	refused(t, p, withAreas(`{
		"Centre": {"kind": "operating", "geometry": `+triangle+`},
		"bowtie": {"kind": "operating", "geometry": {"type": "Polygon", "coordinates": [[[11,48],[12,49],[12,48],[11,49],[11,48]]]}},
		"few": {},
		"more": {"kind": "parking", "geometry": `+triangle+`, "color": "red"},
		"number": 7}`),
		`agencies[0].areas: "Centre": want a name of lower-case letters, digits, '.', '_' and '-', at most 64`,
		`agencies[0].areas.bowtie.geometry.coordinates[0]: crosses or touches itself`,
		`agencies[0].areas.few.kind: missing; want one of [operating no_parking end_only]`,
		`agencies[0].areas.few.geometry: missing`,
		`agencies[0].areas.more.kind: "parking": want one of [operating no_parking end_only]`,
		`agencies[0].areas.more.color: unknown key`,
		`agencies[0].areas.number: want an object`)
}

func TestFleetFile_HasAMostNumberOfAreas(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	list := make([]string, areas.MaxAreas+1)
	for i := range list {
		list[i] = fmt.Sprintf(`"a%d": {"kind": "operating", "geometry": %s}`, i, triangle)
	}
	const tooMany = "agencies[0].areas: An agency has at most 1000 areas: remove one first."
	refused(t, p, withAreas("{"+strings.Join(list, ",")+"}"), tooMany)
	change(t, p, withAreas("{"+strings.Join(list[1:], ",")+"}"))
	refused(t, p, withAreas("{"+list[0]+"}"), tooMany)
	change(t, p, withAreas("{"+list[0]+`, "a1": null}`))
	// Written by others since the plan.
	plan, err := tryPlan(p, t, withAreas(`{"a0": null, "a1": {"kind": "operating", "geometry": `+triangle+`}}`))
	require.NoError(t, err)
	storetest.Exec(t, p.Pool, `insert into areas (agency_id, name, kind, geometry) select 1, 'other', kind, geometry from areas limit 1`)
	if got, err := p.Apply(t.Context(), plan, telematics.OperatorAt("eva")); err == nil || !strings.Contains(err.Error(), "at most 1000") {
		t.Errorf("imported %+v, %v", got, err)
	}
}

var _ rental.Areas = (*stored.Areas)(nil)
