package twins

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/store/pg"
	"motorpool/store/storetest"
	"motorpool/store/vehicles"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// demoFleet returns the fleet of cmd/dev.
func demoFleet(t *testing.T) vehicles.FleetFile {
	t.Helper()
	f, err := os.Open("../../cmd/dev/fleet.json")
	require.NoError(t, err)
	defer f.Close()
	file, err := vehicles.ParseFleetFile(f)
	require.NoError(t, err)
	return file
}

// What it has said of itself it says again only when it connects the next time: without it, no one
// would know that it lacks the next signing key.
func TestImport_MovedUnitKeepsOfItsContactWhatItHasDeclared(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	file := demoFleet(t)
	_, err := p.Import(t.Context(), file)
	require.NoError(t, err)
	for _, v := range file.Vehicles {
		presence := telematics.Presence{
			Status: telematics.Online, Session: "s", At: morning, Firmware: "4.2", Actions: []telematics.Action{}, Keys: []string{"k1"},
		}
		_, err := p.Observe(t.Context(), []delivery.Observation{{Unit: v.Unit, At: morning, Presence: &presence}})
		require.NoError(t, err)
	}
	known, err := p.Twin(t.Context(), 4)
	if err != nil || known.Contact.Status != telematics.Online {
		t.Fatalf("twin %+v, %v; want online", known, err)
	}
	fleet := file.Vehicles
	// Exchange the units of two vehicles.
	fleet[0].Unit, fleet[1].Unit = fleet[1].Unit, fleet[0].Unit
	retired := fleet[2].Unit
	fleet[2].Unit = "new-unit"
	got, err := p.Import(t.Context(), file)
	if want := (vehicles.Imported{Units: 4}); err != nil || got != want {
		t.Errorf("Import = %+v, %v; want %+v", got, err, want)
	}
	declared := telematics.Contact{Firmware: "4.2", Actions: []telematics.Action{}, Keys: []string{"k1"}}
	for i, want := range []telematics.Contact{declared, declared, {}, known.Contact} {
		twin, err := p.Twin(t.Context(), fleet[i].ID)
		if err != nil || twin.Unit != fleet[i].Unit || !reflect.DeepEqual(twin.Contact, want) {
			t.Errorf("vehicle %d: unit %s, contact %+v, %v; want %s, %+v", fleet[i].ID, twin.Unit, twin.Contact, err, fleet[i].Unit, want)
		}
	}
	seen, err := p.Observe(t.Context(), []delivery.Observation{{Unit: retired, At: morning}})
	if err != nil || len(seen.Unknown) != 1 {
		t.Errorf("Observe of a unit without a vehicle = %v, %v; want it unknown", seen.Unknown, err)
	}
}

// What a new unit does not report, as an open door, would stay as the former one has reported it.
func TestImport_AnotherUnitLeavesOnlyThePosition(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	file := demoFleet(t)
	_, err := p.Import(t.Context(), file)
	require.NoError(t, err)
	report := func(unit telematics.Unit, values map[telematics.Field]any) {
		t.Helper()
		r := telematics.Report{At: time.Now(), Values: values}
		seen, err := p.Observe(t.Context(), []delivery.Observation{{Unit: unit, At: r.At, Report: &r}})
		if err != nil || len(seen.Unknown) > 0 {
			t.Fatalf("%+v, %v", seen, err)
		}
	}
	for _, v := range file.Vehicles[:3] {
		report(v.Unit, map[telematics.Field]any{
			telematics.Latitude: 48.1, telematics.Longitude: 11.5, telematics.DoorTrunk: "open", telematics.MileageKm: 7.0,
		})
	}
	fields := func(of int) string {
		t.Helper()
		twin, err := p.Twin(t.Context(), file.Vehicles[of].ID)
		require.NoError(t, err)
		var list []string
		for f := range twin.Snapshot.All() {
			list = append(list, f.String())
		}
		slices.Sort(list)
		return fmt.Sprint(list)
	}
	all := fields(0)
	fleet := file.Vehicles
	fleet[0].Unit, fleet[1].Unit = fleet[1].Unit, "another"
	fleet[2].Color = "black"
	_, err = p.Import(t.Context(), file)
	require.NoError(t, err)
	for of, want := range []string{"[location.latitude location.longitude]", "[location.latitude location.longitude]", all} {
		assert.Equal(t, fields(of), want, "vehicle %d", fleet[of].ID)
	}
	report("another", map[telematics.Field]any{telematics.MileageKm: 8.0})
	assert.Equal(t, fields(1), "[location.latitude location.longitude telemetry.mileage_km]", "reported by another unit")
}

// Redis, and instances, still have what the unit reported before: a unit that is lent to another
// vehicle for a day comes back sooner than that is forgotten.
func TestTwins_UnitThatComesBackLeavesOnlyThePosition(t *testing.T) {
	for name, reports := range map[string]bool{"before it reports": false, "when it reports": true} {
		t.Run(name, func(t *testing.T) {
			p := open(t, storetest.NewDatabase(t))
			twins := newTwins(p, openRedis(t, storetest.StartMiniredis(t).URL()), time.Minute)
			file := demoFleet(t)
			move := func() {
				t.Helper()
				_, err := p.Import(t.Context(), file)
				require.NoError(t, err)
			}
			move()
			lent, borrower := &file.Vehicles[0], &file.Vehicles[1]
			unit, another := lent.Unit, borrower.Unit
			report := func(values map[telematics.Field]any) {
				t.Helper()
				observed(t, twins, unit, &telematics.Report{At: time.Now(), Values: values})
				twins.flushRedis(t.Context(), nil)
			}
			written := func() {
				t.Helper()
				require.NoError(t, twins.dues.makeDue(t.Context(), []telematics.VehicleID{lent.ID}))
				require.NoError(t, twins.writeDueParts(t.Context()))
			}
			type read func(context.Context, telematics.VehicleID) (telematics.Twin, error)
			want := func(what string, get read, km float64, trunk string) {
				t.Helper()
				twin, err := get(t.Context(), lent.ID)
				got := pg.Deref(twin.Snapshot.Text(telematics.DoorTrunk))
				if mileage(t, twin, err) != km || got != trunk || !twin.Snapshot.Has(telematics.Latitude) {
					t.Errorf("%s: %v; want %v km, trunk %q, and a position", what, twin.Snapshot, km, trunk)
				}
				if at := twin.Contact.LastSeen; at.Before(twin.MovedAt) && !at.IsZero() {
					t.Errorf("%s: seen at %v, before the unit was moved at %v", what, at, twin.MovedAt)
				}
			}
			report(map[telematics.Field]any{
				telematics.Latitude: 48.1, telematics.Longitude: 11.5, telematics.DoorTrunk: "open", telematics.MileageKm: 7.0,
			})
			written()
			want("before", p.Twin, 7, "open")
			lent.Unit, borrower.Unit = another, unit
			move()
			lent.Unit, borrower.Unit = unit, another
			move()
			twins.owners.cached.Purge()      // as within a second
			time.Sleep(2 * time.Millisecond) // reports are dated in milliseconds
			if reports {
				report(map[telematics.Field]any{telematics.MileageKm: 8.0})
			}
			km := map[bool]float64{false: -1, true: 8}[reports]
			want("read", twins.Twin, km, "")
			written()
			want("written", twins.Twin, km, "")
			want("in postgres", p.Twin, km, "")
		})
	}
}

func TestImport_SetsTheProtocolOfAUnit(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	file := demoFleet(t)
	file.Vehicles[3].Protocol = "tomorrow" // a protocol of a newer version
	_, err := p.Import(t.Context(), file)
	require.NoError(t, err)
	for i, want := range map[int]telematics.Protocol{2: "v1", 3: "tomorrow"} {
		twin, err := p.Twin(t.Context(), file.Vehicles[i].ID)
		if err != nil || twin.Protocol != want {
			t.Errorf("vehicle %d has protocol %q, %v; want %q", twin.ID, twin.Protocol, err, want)
		}
	}
	unit := file.Vehicles[3].Unit
	presence := telematics.Presence{
		Status: telematics.Online, Session: "s", At: morning, Firmware: "4.2", Actions: []telematics.Action{}, Keys: []string{"k1"},
	}
	_, err = p.Observe(t.Context(),
		[]delivery.Observation{{Unit: unit, Protocol: "tomorrow", At: morning, Presence: &presence}})
	require.NoError(t, err)
	file.Vehicles[3].Protocol = "v1"
	if got, err := p.Import(t.Context(), file); err != nil || got != (vehicles.Imported{Units: 1}) {
		t.Errorf("Import = %+v, %v; want one unit", got, err)
	}
	twin, err := p.Twin(t.Context(), file.Vehicles[3].ID)
	if err != nil || twin.Unit != unit || twin.Protocol != "v1" || !reflect.DeepEqual(twin.Contact, telematics.Contact{}) {
		t.Errorf("%+v, %v; want protocol v1 without a contact", twin, err)
	}
	file.Vehicles[3].Protocol = "Smoke Signals"
	if _, err := p.Import(t.Context(), file); err == nil || !strings.Contains(err.Error(), "units_protocol_form") {
		t.Errorf("Import of an invalid protocol name: %v, want a violation of units_protocol_form", err)
	}
}
