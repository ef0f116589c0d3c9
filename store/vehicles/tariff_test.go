package vehicles

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/store/activity"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

// Agency 1 of wholeFleet has francs.
const (
	compactTariff = `{"per_minute": 0.30, "per_hour": 12, "per_day": 79.00, "per_km": 0.25, "included_km": 100, "per_pause_minute": 0.1,
		"per_reservation_minute": 0.05, "free_reservation_minutes": 15, "minimum": 2, "deposit": 1e2, "plugged_in": true}`
	compactWords = "0.30 CHF a minute, at most 12.00 CHF an hour and 79.00 CHF a day, 0.10 CHF a minute while it is paused, " +
		"0.05 CHF a minute of reservation after 15 minutes, 100 km a day included, then 0.25 CHF a km, 2.00 CHF at least, " +
		"a deposit of 100.00 CHF, to be returned plugged in"
	withTariffs = `{"agencies":[{"id":1,"tariffs":{"compact":` + compactTariff + `,"default":{"per_hour":9}}}]}`
)

// versions returns the tariffs on record, each as its category, version and currency.
func versions(t *testing.T, p *fixture) (list []string) {
	t.Helper()
	err := p.Pool.Select(&list, `
		select concat_ws(' ', agency_id, nullif(category, ''), 'v' || version, currency,
			case when tariff is null then 'none' end, created_by)
		from tariffs order by agency_id, category, version`)
	require.NoError(t, err)
	return list
}

func tariffsOf(t *testing.T, p *fixture, agency telematics.AgencyID) map[string]string {
	t.Helper()
	plans, terms, err := p.RentalTerms(t.Context(), agency)
	require.NoError(t, err)
	words := map[string]string{}
	for _, plan := range plans {
		words[fmt.Sprintf("%s v%d", nameOf(plan.Category), plan.Version)] = plan.Words(terms.Currency)
	}
	return words
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s:\ngot  %v\nwant %v", what, got, want)
	}
}

func TestTariffs_EachChangeIsAVersion(t *testing.T) {
	p := withWholeFleet(t)
	equal(t, "changes", change(t, p, withTariffs), []string{
		"agency 1: tariff default none → 9.00 CHF an hour", "agency 1: tariff compact none → " + compactWords,
	})
	want := map[string]string{"compact v1": compactWords, "default v1": "9.00 CHF an hour"}
	equal(t, "tariffs", tariffsOf(t, p, 1), want)
	plans, _, err := p.RentalTerms(t.Context(), 1)
	if err != nil || len(plans) != 2 || plans[1] != (rental.Plan{
		Category: "compact", Version: 1, Minute: 30, Hour: 1200, Day: 7900, Kilometre: 25, IncludedKm: 100, PauseMinute: 10,
		ReserveMinute: 5, FreeReserve: 15, Minimum: 200, Deposit: 10_000, PluggedIn: true,
	}) {
		t.Errorf("tariffs %+v, %v", plans, err)
	}
	// The same content is no new version; an absent category stays as it is, and null clears one.
	for file, changes := range map[string][]string{
		withTariffs: nil,
		`{"agencies":[{"id":1,"tariffs":{"compact":` + strings.Replace(compactTariff, "1e2", "100", 1) + `}}]}`: nil,
		`{"agencies":[{"id":1,"name":"Isar Mobility"},{"id":2,"tariffs":null}]}`:                                nil,
		`{"agencies":[{"id":1,"tariffs":{"van":null}}]}`:                                                        nil,
	} {
		equal(t, file, change(t, p, file), changes)
	}
	equal(t, "tariffs", tariffsOf(t, p, 1), want)
	equal(t, "changes", change(t, p, `{"agencies":[{"id":1,"tariffs":{"compact":{"per_minute":0.35},"default":null}}]}`), []string{
		"agency 1: tariff default 9.00 CHF an hour → none", "agency 1: tariff compact " + compactWords + " → 0.35 CHF a minute",
	})
	equal(t, "changes", change(t, p, `{"agencies":[{"id":1,"tariffs":null}]}`), []string{
		"agency 1: tariff compact 0.35 CHF a minute → none",
	})
	equal(t, "changes", change(t, p, `{"agencies":[{"id":1,"tariffs":{"compact":{"per_minute":0.35}}}]}`), []string{
		"agency 1: tariff compact none → 0.35 CHF a minute",
	})
	equal(t, "versions", versions(t, p), []string{
		"1 v1 CHF eva", "1 v2 CHF none eva",
		"1 compact v1 CHF eva", "1 compact v2 CHF eva", "1 compact v3 CHF none eva", "1 compact v4 CHF eva",
	})
	// A new agency says all in one line.
	equal(t, "changes", change(t, p, `{"agencies":[{"id":3,"code":"HAM","name":"Alster","tariffs":{"default":{"per_day":50}},
		"rental_rules":{"hold_minutes":20}}]}`), []string{
		"agency 3: new: code HAM, name Alster, currency EUR, tax 0 %, cancel cutoff 0 min, unlock grace 60 min, payment wait 10 min, " +
			"best effort unlock deny, buffer 0 min, rental rules hold_minutes 20, tariff default 50.00 EUR a day",
	})
}

func TestTariffs_Refusals(t *testing.T) {
	p := withWholeFleet(t)
	for tariff, problem := range map[string]string{
		`{}`:                                             `per_minute: missing: want per_minute, per_hour or per_day above 0`,
		`{"per_km": 1}`:                                  `per_minute: missing: want per_minute, per_hour or per_day above 0`,
		`{"per_minute": -1}`:                             `per_minute: -1: must not be negative`,
		`{"per_minute": 0.301}`:                          `per_minute: 0.301: must have at most 2 decimals`,
		`{"per_minute": 0}`:                              `per_minute: missing: want per_minute, per_hour or per_day above 0`,
		`{"per_minute": 0.30, "per_hour": 18}`:           `per_hour: limits nothing: an hour of per_minute costs no more`,
		`{"per_minute": 0.30, "per_day": 432}`:           `per_day: limits nothing: a day of per_minute or per_hour costs no more`,
		`{"per_hour": 10, "per_day": 240}`:               `per_day: limits nothing: a day of per_minute or per_hour costs no more`,
		`{"per_minute": 3, "per_hour": 2}`:               `per_hour: is less than per_minute`,
		`{"per_hour": 10, "per_day": 9}`:                 `per_day: is less than per_hour or per_minute`,
		`{"per_minute": 0.30, "per_pause_minute": 0.31}`: `per_pause_minute: is more than per_minute`,
		`{"per_hour": 9, "included_km": 100}`:            `included_km: needs a per_km`,
		`{"per_hour": 9, "per_pause_minute": 0}`: `per_pause_minute: is 0: a pause costs something, or, without it, ` +
			`as much as any other minute`,
		`{"per_hour": 9, "per_km": 1, "included_km": -1}`:    `included_km: -1: want 0 to 10000`,
		`{"per_hour": 9, "free_reservation_minutes": 15}`:    `free_reservation_minutes: needs a per_reservation_minute`,
		`{"per_hour": 9, "plugged_in": "yes"}`:               `plugged_in: "yes": want true or false`,
		`{"per_hour": 9, "per_mile": 1}`:                     `per_mile: unknown key`,
		`7`:                                                  `want an object`,
		`{"per_hour": 9, "deposit": "100"}`:                  `deposit: "100": must be a decimal number such as 12.5`,
		`{"per_hour": 9, "minimum": 10000000000.01}`:         `minimum: 10000000000.01: must be at most 10000000000.00`,
		`{"per_minute": 0.1, "per_hour": 5, "per_day": 120}`: `per_day: limits nothing: a day of per_minute or per_hour costs no more`,
	} {
		place := "agencies[0].tariffs.van"
		if tariff != `7` {
			place += "."
		} else {
			place += ": "
		}
		refused(t, p, `{"agencies":[{"id":1,"tariffs":{"van":`+tariff+`}}]}`, strings.Split(place+problem, "\n")...)
	}
	for agency, problem := range map[string]string{
		`"tariffs": []`:                                `agencies[0].tariffs: []: want an object with a tariff for each category`,
		`"tariffs": {"": null}`:                        `agencies[0].tariffs: "": want each category once, and default for the others`,
		`"tariffs": {"\u00dc": null, "U\u0308": null}`: `agencies[0].tariffs: "Ü": want each category once, and default for the others`,
		`"rental_rules": 7`:                            `agencies[0].rental_rules: want an object`,
		`"rental_rules": {"return_to": "home"}`:        `agencies[0].rental_rules.return_to: "home": want one of [anywhere station area]`,
		`"rental_rules": {"return_key": "lost"}`:       `agencies[0].rental_rules.return_key: "lost": want in, out or null`,
		`"rental_rules": {"charge_at_start": "all"}`:   `agencies[0].rental_rules.charge_at_start: "all": want one of [estimate nothing]`,
		`"rental_rules": {"hold_minutes": -1}`:         `agencies[0].rental_rules.hold_minutes: -1: want 0 to 527040`,
		`"rental_rules": {"min_energy_percent": 101}`:  `agencies[0].rental_rules.min_energy_percent: 101: want 0 to 100`,
		`"rental_rules": {"hold": 1}`:                  `agencies[0].rental_rules.hold: unknown key`,
	} {
		refused(t, p, `{"agencies":[{"id":1,`+agency+`}]}`, problem)
	}
	refused(t, p, `{"agencies":[{"id":1,"tariffs":{"\u200b":null}}]}`,
		`agencies[0].tariffs: "\u200b": want each category once, and default for the others`)
	equal(t, "versions", versions(t, p), []string{})
}

// A vehicle without the tariff of its category costs something else.
func TestTariffs_ACategoryDiffersByMoreThanItsLetterCase(t *testing.T) {
	p := withWholeFleet(t)
	change(t, p, `{"agencies":[{"id":1,"tariffs":{"mini":{"per_minute":0.20}}}]}`)
	refused(t, p, `{"vehicles":[{"id":1,"category":"Mini"}]}`, `vehicles[0].category: "Mini": the agency's tariff is for "mini"`)
	refused(t, p, `{"agencies":[{"id":1,"tariffs":{"van":{"per_minute":0.40}}}],"vehicles":[{"id":1,"category":"VAN"}]}`,
		`vehicles[0].category: "VAN": the agency's tariff is for "van"`)
	change(t, p, `{"agencies":[{"id":1,"tariffs":{"mini":null}}],"vehicles":[{"id":1,"category":"Mini"}]}`)
	change(t, p, `{"agencies":[{"id":1,"tariffs":{"mini":{"per_minute":0.20}}}],"vehicles":[{"id":1,"color":"red"}]}`)
	change(t, p, `{"vehicles":[{"id":1,"category":"mini"}]}`)
	change(t, p, `{"agencies":[{"id":1,"tariffs":{"Mini":{"per_minute":0.30}}}],"vehicles":[{"id":1,"category":"Mini"}]}`)
}

// Amounts are never read in another currency.
func TestTariffs_AreRemovedBeforeTheCurrencyChanges(t *testing.T) {
	p := withWholeFleet(t)
	change(t, p, withTariffs)
	change(t, p, `{"agencies":[{"id":1,"fee_limit":null}],"vehicles":[{"id":1,"hourly_rate":null}]}`)
	refused(t, p, `{"agencies":[{"id":1,"currency":"EUR","tariffs":null}]}`,
		"agencies[0].currency: CHF → EUR: there are prices in CHF; remove them by an import before this one: "+
			"hourly_rate of its vehicles, tariffs and fee_limit null")
	change(t, p, `{"agencies":[{"id":1,"tariffs":{"default":null}}]}`)
	// An instance of version 0.7 changes the currency, and knows no tariffs.
	storetest.Exec(t, p.Pool, `update agencies set currency = 'JPY' where id = 1`)
	equal(t, "tariffs", tariffsOf(t, p, 1), map[string]string{})
	equal(t, "changes", change(t, p, `{"agencies":[{"id":1,"tariffs":{"compact":{"per_minute":30,"per_hour":1200}}}]}`), []string{
		"agency 1: tariff compact none → 30 JPY a minute, at most 1200 JPY an hour",
	})
	equal(t, "tariffs", slices.Collect(maps.Keys(tariffsOf(t, p, 1))), []string{"compact v2"})
	// What is removed with its currency does not come back with that.
	for _, agency := range []string{`"tariffs":null`, `"currency":"CHF"`, `"currency":"JPY"`} {
		change(t, p, `{"agencies":[{"id":1,`+agency+`}]}`)
		equal(t, "tariffs", tariffsOf(t, p, 1), map[string]string{})
	}
}

func TestRentalRules_AbsentOnesHaveTheirDefaults(t *testing.T) {
	p := withWholeFleet(t)
	rules := func() rental.Rules {
		t.Helper()
		_, terms, err := p.RentalTerms(t.Context(), 1)
		require.NoError(t, err)
		return terms.Rules
	}
	equal(t, "rules", rules(), rental.DefaultRules)
	equal(t, "changes", change(t, p, `{"agencies":[{"id":1,"rental_rules":{"max_distance_m":200,"return_to":"area","station_radius_m":50,
		"return_doors":false,"return_windows":false,"return_trunk":false,"return_key":"in","charge_at_start":"nothing",
		"max_open_bookings":1,
		"max_unpaid":0,"hold_minutes":20,"no_show_minutes":60,"min_length_minutes":5,
		"position_decimals":3,"min_energy_percent":25}}]}`), []string{
		"agency 1: rental rules none → charge_at_start nothing, hold_minutes 20, max_distance_m 200, max_open_bookings 1, max_unpaid 0, " +
			"min_energy_percent 25, min_length_minutes 5, no_show_minutes 60, position_decimals 3, return_doors false, " +
			"return_key in, return_to area, return_trunk false, return_windows false, station_radius_m 50",
	})
	equal(t, "rules", rules(), rental.Rules{
		MaxDistance: 200, ReturnTo: rental.ReturnToArea, StationRadius: 50, ReturnKey: rental.KeyIn, ChargeAtStart: rental.ChargeNothing,
		MaxOpenBookings: 1, HoldFor: 20, NoShow: 60, MinLength: 5, PositionDecimals: 3, MinEnergyPercent: 25,
	})
	equal(t, "changes", change(t, p, `{"agencies":[{"id":1}]}`), []string{})
	// They are given as a whole.
	change(t, p, `{"agencies":[{"id":1,"rental_rules":{"hold_minutes":30}}]}`)
	want := rental.DefaultRules
	want.HoldFor = 30
	equal(t, "rules", rules(), want)
	equal(t, "changes", change(t, p, `{"agencies":[{"id":1,"rental_rules":null}]}`), []string{
		"agency 1: rental rules hold_minutes 30 → none",
	})
	equal(t, "rules", rules(), rental.DefaultRules)
}

func TestEdit_OfAnAgencyHasTheRulesOfFleetFiles(t *testing.T) {
	p := withWholeFleet(t)
	edit := func(agency telematics.AgencyID, sees telematics.AgencyID, fields string) (telematics.FleetEdited, error) {
		return p.Edit(t.Context(), telematics.FleetEdit{Agency: agency, Fields: []byte(fields), Entry: telematics.Activity{
			Actor: telematics.Actor{Subject: "zoe", Role: telematics.Admin, Agency: sees}, Action: rental.TariffChange, At: morning,
		}})
	}
	done, err := edit(1, 1, `{"tariffs":{"compact":{"per_minute":0.30}}}`)
	require.NoError(t, err)
	equal(t, "changes", done.Changes, []string{"agency 1: tariff compact none → 0.30 CHF a minute"})
	equal(t, "versions", versions(t, p), []string{"1 compact v1 CHF zoe"})
	entries, err := activity.New(p.DB).Activities(t.Context(), telematics.ActivityQuery{Action: rental.TariffChange})
	if err != nil || len(entries) != 1 || entries[0].Agency != 1 || entries[0].Actor.Subject != "zoe" {
		t.Fatalf("entries %+v, %v", entries, err)
	}
	details, _ := json.Marshal(entries[0].Details)
	equal(t, "details", string(details), `{"changes":["agency 1: tariff compact none → 0.30 CHF a minute"]}`)
	if done, err = edit(1, 1, `{"tariffs":{"compact":{"per_minute":0.3}}}`); err != nil || len(done.Changes) != 0 {
		t.Errorf("the same again: %q, %v", done.Changes, err)
	}
	if done, err = edit(1, 1, `{"tariffs":{"van":null}}`); err != nil || len(done.Changes) != 0 {
		t.Errorf("no tariff is removed: %q, %v", done.Changes, err)
	}
	entries, err = activity.New(p.DB).Activities(t.Context(), telematics.ActivityQuery{Action: rental.TariffChange})
	if err != nil || len(entries) != 1 {
		t.Errorf("entries of edits that change nothing: %+v, %v", entries, err)
	}
	_, err = edit(1, 1, `{"tariffs":{"compact":{"per_minute":0.30,"per_hour":18}}}`)
	var field *rental.FieldError
	if !errors.As(err, &field) || field.Field != "per_hour" {
		t.Errorf("a limit that limits nothing: %v", err)
	}
	for _, c := range []struct{ agency, sees telematics.AgencyID }{{1, 2}, {7, 0}} {
		var refusal *telematics.Error
		if _, err := edit(c.agency, c.sees, `{"tariffs":{"compact":{"per_minute":0.4}}}`); !errors.As(err, &refusal) ||
			refusal.Code != telematics.AgencyNotFound {
			t.Errorf("agency %d by an administrator of %d: %v", c.agency, c.sees, err)
		}
	}
	equal(t, "versions", versions(t, p), []string{"1 compact v1 CHF zoe"})
}
