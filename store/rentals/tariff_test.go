package rentals

import (
	"errors"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"motorpool/rental"
	"motorpool/store/vehicles"
	"motorpool/telematics"
)

// setTariffs imports tariffs of agency 1.
func (w *rentalWorld) setTariffs(plans map[string]*rental.Plan) {
	w.t.Helper()
	imported, err := w.here.Import(w.t.Context(), vehicles.FleetFile{
		Agencies: []telematics.Agency{{ID: 1, Code: "MUC", Name: "Isar Mobility"}},
		Terms: map[telematics.AgencyID]rental.Terms{
			1: {Currency: "EUR", Tax: 100_000, CancelCutoff: 2 * time.Hour, Buffer: 15 * time.Minute},
		},
		Tariffs: map[telematics.AgencyID]map[string]*rental.Plan{1: plans},
	})
	if err != nil || imported.Tariffs != len(plans) {
		w.t.Fatalf("imported %+v, %v", imported, err)
	}
}

func TestBook_ByTheNewestTariffOfTheCategory(t *testing.T) {
	w := newRentalWorld(t)
	w.exec(`update vehicles set category = 'van', hourly_rate = null where id = 2`)
	w.exec(`update vehicles set category = 'van' where id = 3`)
	compact := rental.Plan{Category: "compact", Minute: 30, Hour: 1_200, Day: 7_900, Deposit: 10_000, FreeReserve: 15}
	w.setTariffs(map[string]*rental.Plan{"compact": {Category: "compact", Hour: 900}})
	w.setTariffs(map[string]*rental.Plan{"compact": &compact, "": {Hour: 500}})
	compact.Version = 2
	for _, c := range []struct {
		vehicle  telematics.VehicleID
		plan     *rental.Plan
		subtotal rental.Minor
	}{{1, &compact, 7_900}, {2, &rental.Plan{Version: 1, Hour: 500}, 8 * 500}} {
		made := w.book(draft(c.vehicle, 4, 12))
		read, err := w.there.BookingDetails(t.Context(), made.ID)
		for what, d := range map[string]rental.BookingDetails{"made": made, "read": read} {
			if err != nil || d.Plan == nil || *d.Plan != *c.plan || d.Price.Subtotal != c.subtotal || d.Price.Deposit != c.plan.Deposit {
				t.Errorf("vehicle %d, %s: plan %+v, price %+v, %v; want %+v", c.vehicle, what, d.Plan, d.Price, err, c)
			}
		}
	}
	offered, err := w.there.readAgencyOffer(t.Context(), 1)
	if err != nil || *offered.plan("compact") != compact || *offered.plan("van") != (rental.Plan{Version: 1, Hour: 500}) {
		t.Errorf("offered by %+v, %v", offered.plans, err)
	}
	// A booking keeps its version when it is extended.
	made := w.book(draft(1, 14, 15))
	w.setTariffs(map[string]*rental.Plan{"compact": {Category: "compact", Hour: 5_000}, "": nil})
	longer := w.amend(rental.BookingExtend, made.ID, noon, func(d rental.BookingDetails) (rental.Change, error) {
		return d.Extend(noon, d.End.Add(time.Hour), telematics.Client)
	})
	if longer.Plan == nil || *longer.Plan != compact || longer.Price.Subtotal != 2_400 {
		t.Errorf("extended by %+v for %+v; want by version 2, for 24.00", longer.Plan, longer.Price)
	}
	// Without a tariff: the hourly rate, and without one of those, nothing.
	if made := w.book(draft(3, 4, 12)); made.Plan != nil || made.Price.Subtotal != 12_000 {
		t.Errorf("booked by %+v for %+v; want at the hourly rate", made.Plan, made.Price)
	}
	if _, _, err := w.here.OpenBooking(t.Context(), draft(2, 14, 15), asks(operator, rental.BookingCreate, 0, noon)); codeOf(err) !=
		rental.VehicleNotAvailable {
		t.Errorf("a vehicle without tariff and rate: %v", err)
	}
	// In another currency a tariff does not count.
	w.exec(`update agencies set currency = 'CHF' where id = 1`)
	if made := w.book(draft(1, 20, 28)); made.Plan != nil || made.Price.Subtotal != 12_000 || made.Price.Currency != "CHF" {
		t.Errorf("booked by %+v for %+v; want at the hourly rate", made.Plan, made.Price)
	}
}

// What a vehicle costs is read after the terms of its agency, and may be in another currency by
// then.
func TestBook_AgainWhereTheCurrencyChangesMeanwhile(t *testing.T) {
	w := newRentalWorld(t)
	err := w.here.Within(t.Context(), func(tx *sqlx.Tx) error {
		facts := rental.Facts{Terms: rental.Terms{Currency: "CHF"}}
		return readVehicle(t.Context(), tx, draft(1, 4, 12), "", &facts)
	})
	if !errors.Is(err, errCurrencyChanged) || !isGivenUp(err) {
		t.Errorf("terms in CHF, rates in EUR: %v; want the booking tried again", err)
	}
}
