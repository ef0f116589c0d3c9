package vehicles

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"

	"motorpool/internal/require"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

func TestSearch_FindsAPlateHoweverItIsWritten(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	for id, plate := range map[telematics.VehicleID]string{1: "M-Ü 777", 2: "M-IM 2101", 3: norm.NFD.String("TÖ-Ø 1"), 4: "А-Б 12"} {
		storetest.AddVehicle(t, p.DB, id)
		storetest.Exec(t, p.Pool, `update vehicles set plate_number = $2 where id = $1`, id, plate)
	}
	for range 2 {
		for text, want := range map[string]telematics.VehicleID{
			"M-Ü 777": 1, "m-ü 777": 1, norm.NFD.String("m-ü 777"): 1, "mü777": 1, "ü 77": 1, "m-im2101": 2, "M IM-2101": 2, "tö-ø 1": 3,
			"TÖØ1": 3, "а-б": 4, "аб12": 4,
		} {
			twins, err := p.twinsAt(t.Context(), telematics.VehicleQuery{Text: text}, morning)
			if err != nil || !slices.Equal(twinIDs(twins), []telematics.VehicleID{want}) {
				t.Errorf("vehicles with %q: %v, %v; want %d", text, twinIDs(twins), err, want)
			}
			units, err := p.unitsAt(t.Context(), telematics.UnitQuery{Text: text}, morning)
			if err != nil || len(units) != 1 || units[0].Vehicle.ID != want {
				t.Errorf("units with %q: %+v, %v; want that of %d", text, units, err, want)
			}
		}
		// As rows of before the migration are.
		storetest.Exec(t, p.Pool, `
			alter table vehicles disable trigger vehicles_search; update vehicles
			set search = null; alter table vehicles enable trigger vehicles_search`)
	}
}

func TestPlainText_IsThatOfGo(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	var all strings.Builder
	for r := rune(' '); r < 0x590; r++ {
		all.WriteString(string(r) + ".") // apart, so that marks are not sorted
	}
	all.WriteString("ẞ\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u00A0\u2009Ａ-１\t")
	var got string
	require.NoError(t, p.Pool.Get(&got, `select plain_text($1)`, all.String()))
	if want := telematics.Plain(all.String()); got != want {
		a, b := []rune(got), []rune(want)
		for i := range min(len(a), len(b)) {
			if a[i] != b[i] {
				t.Fatalf("Postgres has %q (%U), Go %q (%U), at %d", a[i], a[i], b[i], b[i], i)
			}
		}
		t.Fatalf("Postgres has %d characters, Go %d", len(a), len(b))
	}
}
