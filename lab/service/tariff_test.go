package service_test

import (
	"net/http"
	"testing"
	"time"
)

// A tariff is set through one instance, which has no more rights in the database than the service
// needs. Each instance books by it from then on, and a booking keeps the version by which it was
// made.
func TestTariff_BookingsKeepTheVersionByWhichTheyAreMade(t *testing.T) {
	t.Parallel()
	r := embeddedStack(t, 3).rent()
	here := r.open()
	there := r.open()
	anna := r.newCustomer()
	anna.add(here, "pm_card_visa", true)

	const tariffs = "/api/v1/admin/agencies/1/tariffs"
	const cents30 = `{"per_minute":0.30,"per_hour":12,"per_day":79,"per_km":0.25,"included_km":100,"minimum":5,"deposit":100}`
	const words = "0.30 EUR a minute, at most 12.00 EUR an hour and 79.00 EUR a day, 100 km a day included, then 0.25 EUR a km, " +
		"5.00 EUR at least, a deposit of 100.00 EUR"
	set := here.asAdmin(http.MethodPut, tariffs+"/compact", cents30).wants(200, "")
	set.has("data.category", `"compact"`, "data.version", "1", "data.per_minute", "0.30", "data.description", `"`+words+`"`)
	if changes := set.list("meta.changes"); len(changes) != 1 || changes[0] != "agency 1: tariff compact none → "+words {
		t.Errorf("changes %q", changes)
	}
	first := anna.book(there, 1, fromNow(time.Hour), "")
	anna.get(here, ownOf(first)).wants(200, "").has(
		"data.pricing.subtotal", "79.00", "data.pricing.tax", "7.90", "data.pricing.rental_total", "86.90",
		"data.pricing.deposit", "100.00", "data.pricing.hourly_rate", "12.00", "data.pricing.tariff.version", "1")

	// Twice the same is one version; another content is another one, for new bookings.
	for range 2 {
		there.asAdmin(http.MethodPut, tariffs+"/compact", `{"per_hour":9}`).wants(200, "").has("data.version", "2")
	}
	second := anna.book(here, 1, fromNow(24*time.Hour), "")
	for booking, want := range map[int64][2]string{first: {"1", "79.00"}, second: {"2", "72.00"}} {
		here.asAdmin(http.MethodGet, adminOf(booking), "").wants(200, "").
			has("data.pricing.tariff.version", want[0], "data.pricing.subtotal", want[1])
	}
	here.asAdmin(http.MethodDelete, tariffs+"/compact", "").wants(200, "")
	here.asAdmin(http.MethodGet, tariffs+"/compact", "").wants(404, "tariff_not_found")
	third := anna.book(there, 1, fromNow(48*time.Hour), "")
	if at := there.asAdmin(http.MethodGet, adminOf(third), "").wants(200, "").has("data.pricing.subtotal", "120.00").
		at("data.pricing.tariff"); at != nil {
		t.Errorf("booked by %v, want at the hourly rate", at)
	}
}
