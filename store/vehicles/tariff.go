package vehicles

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"motorpool/rental"
	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// tariffs reads what the categories of an agency cost: those that the file names, nil where it
// clears one.
func (p *part) tariffs(before agency, is rental.Currency) map[string]*rental.Plan {
	const key = "tariffs"
	raws, presence := take[map[string]json.RawMessage](p, key, "an object with a tariff for each category")
	named := map[string]*rental.Plan{}
	if presence == null {
		for category := range before.tariffs {
			named[category] = nil
		}
	}
	for _, name := range slices.Sorted(maps.Keys(raws)) {
		category := categoryOf(p.clean(key, name))
		if _, twice := named[category]; twice || category == "" && name != rental.DefaultCategory {
			p.problem(key, "%q: want each category once, and %s for the others", name, rental.DefaultCategory)
		}
		named[category] = nil
		if string(raws[name]) != "null" {
			named[category] = newPart(p.inner(key+"."+name), raws[name], p.problems).tariff(category, is)
		}
	}
	return named
}

func (p *part) inner(key string) string { return strings.Trim(p.place+"."+key, ".") }

// categoryOf returns the category of vehicles that a name stands for, and nameOf the name.
func categoryOf(name string) string {
	if name == rental.DefaultCategory {
		return ""
	}
	return name
}

func nameOf(category string) string { return cmp.Or(category, rental.DefaultCategory) }

// maxIncludedKm bounds the distance that a day includes: more is a slip of the finger.
const maxIncludedKm = 10_000

// tariff reads a tariff, all of it: what is absent is not charged.
func (p *part) tariff(category string, c rental.Currency) *rental.Plan {
	defer p.end()
	earlier := len(*p.problems)
	amount := func(key string) rental.Minor { return pg.Deref(p.amount(key, c, nil)) }
	pauses := p.amount("per_pause_minute", c, nil)
	plan := rental.Plan{
		Category: category, Minute: amount("per_minute"), Hour: amount("per_hour"), Day: amount("per_day"), Kilometre: amount("per_km"),
		IncludedKm:    whole(p, "included_km", 0, maxIncludedKm, 0),
		PauseMinute:   pg.Deref(pauses),
		ReserveMinute: amount("per_reservation_minute"), FreeReserve: whole(p, "free_reservation_minutes", 0, maxPause, 0),
		Minimum: amount("minimum"), Deposit: amount("deposit"), PluggedIn: p.yes("plugged_in", false),
	}
	if len(*p.problems) > earlier || c == "" { // amounts are missing
		return &plan
	}
	need := func(is bool, key, message string) {
		if !is {
			p.problem(key, "%s", message)
		}
	}
	need(plan.Minute+plan.Hour+plan.Day > 0, "per_minute", "missing: want per_minute, per_hour or per_day above 0")
	hour, day := plan.Limits()
	need(plan.Hour == 0 || hour, "per_hour", "limits nothing: an hour of per_minute costs no more")
	need(plan.Day == 0 || day, "per_day", "limits nothing: a day of per_minute or per_hour costs no more")
	need(plan.Hour == 0 || plan.Hour >= plan.Minute, "per_hour", "is less than per_minute")
	need(plan.Day == 0 || plan.Day >= max(plan.Hour, plan.Minute), "per_day", "is less than per_hour or per_minute")
	need(pauses == nil || *pauses > 0, "per_pause_minute", "is 0: a pause costs something, or, without it, as much as any other minute")
	need(plan.Minute == 0 || plan.PauseMinute <= plan.Minute, "per_pause_minute", "is more than per_minute")
	need(plan.IncludedKm == 0 || plan.Kilometre > 0, "included_km", "needs a per_km")
	need(plan.FreeReserve == 0 || plan.ReserveMinute > 0, "free_reservation_minutes", "needs a per_reservation_minute")
	return &plan
}

// whole reads a whole number between two bounds.
func whole[T ~int | ~int64](p *part, key string, low, high, usual T) T {
	n, read := optional(p, key, "a whole number", usual, usual)
	if read && (n < low || n > high) {
		p.problem(key, "%d: want %d to %d", n, low, high)
	}
	return n
}

func (p *part) yes(key string, usual bool) bool {
	is, _ := optional(p, key, "true or false", usual, usual)
	return is
}

// Bounds of rental rules: more is a slip of the finger.
const (
	maxRuleMetres   = 100_000
	maxRuleCount    = 1_000
	maxRuleDecimals = 7 // a centimetre
)

// rules reads the rental rules of an agency, all of them: what is absent has its default.
func (p *part) rules(recorded rental.Rules) rental.Rules {
	const key = "rental_rules"
	raw, is := take[json.RawMessage](p, key, "")
	usual := rental.DefaultRules
	switch is {
	case absent:
		return recorded
	case null:
		return usual
	}
	in := newPart(p.inner(key), raw, p.problems)
	defer in.end()
	return rental.Rules{
		MaxDistance:      whole(in, "max_distance_m", 0, maxRuleMetres, usual.MaxDistance),
		ReturnTo:         oneOf(in, "return_to", rental.ReturnPlaces, usual.ReturnTo, usual.ReturnTo),
		StationRadius:    whole(in, "station_radius_m", 1, maxRuleMetres, usual.StationRadius),
		ReturnDoors:      in.yes("return_doors", usual.ReturnDoors),
		ReturnWindows:    in.yes("return_windows", usual.ReturnWindows),
		ReturnTrunk:      in.yes("return_trunk", usual.ReturnTrunk),
		ReturnKey:        in.key("return_key"),
		ChargeAtStart:    oneOf(in, "charge_at_start", rental.StartChargings, usual.ChargeAtStart, usual.ChargeAtStart),
		MaxOpenBookings:  whole(in, "max_open_bookings", 0, maxRuleCount, usual.MaxOpenBookings),
		MaxUnpaid:        whole(in, "max_unpaid", 0, maxRuleCount, usual.MaxUnpaid),
		HoldFor:          whole(in, "hold_minutes", 0, maxPause, usual.HoldFor),
		NoShow:           whole(in, "no_show_minutes", 0, maxPause, usual.NoShow),
		MinLength:        whole(in, "min_length_minutes", 0, maxPause, usual.MinLength),
		PositionDecimals: whole(in, "position_decimals", 0, maxRuleDecimals, usual.PositionDecimals),
		MinEnergyPercent: whole(in, "min_energy_percent", 0, 100, usual.MinEnergyPercent),
	}
}

// key reads where a key must be; null: anywhere.
func (p *part) key(name string) rental.KeyPosition {
	position, read := optional(p, name, "a string", rental.KeyAnywhere, rental.KeyAnywhere)
	if read && position != rental.KeyIn && position != rental.KeyOut {
		p.problem(name, "%q: want %s, %s or null", position, rental.KeyIn, rental.KeyOut)
	}
	return position
}

// describedRules returns rules in words: those that are not the defaults.
func describedRules(r rental.Rules) string {
	var list []string
	usual := fieldsOf(rental.DefaultRules)
	for key, value := range fieldsOf(r) {
		if value != usual[key] {
			list = append(list, fmt.Sprint(key, " ", value))
		}
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// fieldsOf returns the rules by their names.
func fieldsOf(r rental.Rules) (fields map[string]any) {
	if err := json.Unmarshal([]byte(pg.JSON(r)), &fields); err != nil {
		panic(err) // it was encoded a line before
	}
	return fields
}

// differingTariffs compares tariffs in a currency with those of an agency on record, which is the
// zero value where it is new.
func differingTariffs(
	before agency, after map[string]*rental.Plan, id telematics.AgencyID, c rental.Currency,
) (list []Difference) {
	for _, category := range slices.Sorted(maps.Keys(after)) {
		d := Difference{Object: fmt.Sprint("agency ", id), Field: "tariff " + nameOf(category), New: before.ID == 0}
		if was, known := before.tariffs[category]; known {
			d.From = was.Words(before.Currency)
		}
		if is := after[category]; is != nil {
			d.To = is.Words(c)
		}
		if d.From != d.To {
			list = append(list, d)
		}
	}
	return list
}

type tariffRow struct {
	Agency   telematics.AgencyID `db:"agency_id" json:"agency_id"`
	Category string              `db:"category" json:"category"`
	Version  int                 `db:"version" json:"version"`
	Currency rental.Currency     `db:"currency" json:"currency"`
	Tariff   *json.RawMessage    `db:"tariff" json:"tariff"` // null: none
	By       string              `db:"created_by" json:"created_by"`
}

// plan returns nil where there is none in a currency.
func (r tariffRow) plan(c rental.Currency) (*rental.Plan, error) {
	if r.Tariff == nil || r.Currency != c {
		return nil, nil
	}
	var plan rental.Plan
	if err := json.Unmarshal(*r.Tariff, &plan); err != nil {
		return nil, fmt.Errorf("tariff %s of agency %d: %w", nameOf(r.Category), r.Agency, err)
	}
	plan.Category, plan.Version = r.Category, r.Version
	return &plan, nil
}

// readTariffs returns the newest version of each tariff of some agencies.
func readTariffs(ctx context.Context, db pg.Querier, agencies []int64) (rows []tariffRow, err error) {
	err = db.SelectContext(ctx, &rows, `
		select distinct on (agency_id, category) agency_id, category, version, currency, tariff, created_by
		from tariffs
		where agency_id = any ($1)
		order by agency_id, category, version desc`, pq.Array(agencies))
	return rows, err
}

// importTariffs adds a version of each tariff of the file that differs from what is on record, and
// returns how many. A tariff in another currency than its agency's counts as none.
func importTariffs(ctx context.Context, tx *sqlx.Tx, file FleetFile, by string) (int, error) {
	if len(file.Tariffs) == 0 {
		return 0, nil
	}
	newest := map[telematics.AgencyID]map[string]tariffRow{}
	ids := make([]int64, 0, len(file.Tariffs))
	for id := range file.Tariffs {
		newest[id], ids = map[string]tariffRow{}, append(ids, int64(id))
	}
	recorded, err := readTariffs(ctx, tx, ids)
	if err != nil {
		return 0, err
	}
	for _, row := range recorded {
		newest[row.Agency][row.Category] = row
	}
	rows := []tariffRow{}
	for id, tariffs := range file.Tariffs {
		currency := cmp.Or(file.Terms[id].Currency, rental.DefaultCurrency)
		for category, plan := range tariffs {
			before := newest[id][category]
			was, err := before.plan(currency)
			if err != nil {
				return 0, err
			}
			row := tariffRow{Agency: id, Category: category, Version: before.Version + 1, Currency: currency, By: by}
			if plan != nil {
				row.Tariff = new(json.RawMessage(pg.JSON(plan)))
			}
			// One that is removed with its currency must not come back with that.
			if !samePlan(was, plan) || plan == nil && before.Tariff != nil {
				rows = append(rows, row)
			}
		}
	}
	return upsert(ctx, tx, `
		insert into tariffs (agency_id, category, version, currency, tariff, created_by)
		select agency_id, category, version, currency, tariff, created_by from json_populate_recordset(null::tariffs, $1)`, rows)
}

// samePlan compares what plans cost.
func samePlan(a, b *rental.Plan) bool {
	if a == nil || b == nil {
		return a == b
	}
	x, y := *a, *b
	x.Version, y.Version = 0, 0
	return x == y
}

// importRules writes the rental rules of the file that differ from those on record, and returns how
// many agencies have other ones.
func importRules(ctx context.Context, tx *sqlx.Tx, file FleetFile) (int, error) {
	type row struct {
		Agency telematics.AgencyID `json:"agency_id"`
		Rules  json.RawMessage     `json:"rules"`
	}
	if len(file.Agencies) == 0 {
		return 0, nil
	}
	ids := pg.Map(file.Agencies, func(a telematics.Agency) telematics.AgencyID { return a.ID })
	recorded, err := pg.Pairs[telematics.AgencyID, []byte](ctx, tx,
		`select agency_id, rules from rental_rules where agency_id = any ($1)`, pq.Array(ids))
	if err != nil {
		return 0, err
	}
	before := map[telematics.AgencyID]rental.Rules{}
	for agency, text := range recorded {
		if before[agency], err = decodeRules(text); err != nil {
			return 0, err
		}
	}
	rows := []row{}
	for _, a := range file.Agencies {
		rules := file.Terms[a.ID].Rules
		was, known := before[a.ID]
		if !known {
			was = rental.DefaultRules
		}
		if rules != was && rules != (rental.Rules{}) {
			rows = append(rows, row{a.ID, json.RawMessage(pg.JSON(rules))})
		}
	}
	return upsert(ctx, tx, `
		insert into rental_rules (agency_id, rules)
		select agency_id, rules from json_populate_recordset(null::rental_rules, $1)
		on conflict (agency_id) do update set rules = excluded.rules`, rows)
}

// TermsRow is the part of a row of agencies that bookings use.
type TermsRow struct {
	rental.Terms
	Stored []byte `db:"stored_rules"` // JSON; null: the defaults
}

// TermsColumns are those of a TermsRow under the name terms, of agencies a.
const TermsColumns = `a.currency as "terms.currency", a.tax_ppm as "terms.tax", coalesce(a.fee_limit, 0) as "terms.feelimit",
	(extract(epoch from a.cancel_cutoff) * 1000000000)::bigint as "terms.cancelcutoff",
	(extract(epoch from a.buffer) * 1000000000)::bigint as "terms.buffer",
	(extract(epoch from a.unlock_grace) * 1000000000)::bigint as "terms.unlockgrace",
	(extract(epoch from a.payment_wait) * 1000000000)::bigint as "terms.paymentwait",
	(select rules from rental_rules r where r.agency_id = a.id) as "terms.stored_rules"`

// Columns are where TermsColumns go.
func (r *TermsRow) Columns() []any {
	return []any{&r.Currency, &r.Tax, &r.FeeLimit, &r.CancelCutoff, &r.Buffer, &r.UnlockGrace, &r.PaymentWait, &r.Stored}
}

// Decode returns the terms. It fails where the rules are no JSON of rules.
func (r TermsRow) Decode() (terms rental.Terms, err error) {
	terms = r.Terms
	if terms.Rules, err = decodeRules(r.Stored); err != nil {
		return rental.Terms{}, fmt.Errorf("decode rental rules: %w", err)
	}
	return terms, nil
}

// decodeRules decodes the rules of a row; null: it has none.
func decodeRules(text []byte) (rental.Rules, error) {
	rules := rental.DefaultRules
	if text == nil {
		return rules, nil
	}
	err := json.Unmarshal(text, &rules)
	return rules, err
}

// RentalTerms returns the tariffs of an agency, by category, and its currency and rental rules, or
// a *telematics.Error with AgencyNotFound.
func (f *Fleet) RentalTerms(ctx context.Context, id telematics.AgencyID) ([]rental.Plan, rental.Terms, error) {
	found, err := readAgencies(ctx, f.db.Pool, []int64{int64(id)})
	if err != nil {
		return nil, rental.Terms{}, unavailable.Wrap("read the rental terms of an agency", err)
	}
	a, known := found[id]
	if !known {
		return nil, rental.Terms{}, telematics.NoSuchAgency(id)
	}
	plans := make([]rental.Plan, 0, len(a.tariffs))
	for _, category := range slices.Sorted(maps.Keys(a.tariffs)) {
		plans = append(plans, a.tariffs[category])
	}
	return plans, a.Terms, nil
}
