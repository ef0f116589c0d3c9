package httpapi_test

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"motorpool/broker"
	"motorpool/rental"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// controller answers orders with a function, and records them.
type controller struct {
	mu     sync.Mutex
	orders []delivery.Order
	send   func(context.Context, delivery.Order) (telematics.Command, error)
	start  func(context.Context, delivery.Order) (delivery.Receipt, error)
	replay bool // each order counts as a repetition
	many   broker.Many
}

func (c *controller) Send(ctx context.Context, o *delivery.Order) (delivery.Receipt, error) {
	c.note(*o)
	command, err := c.send(ctx, *o)
	return delivery.Receipt{Command: &command, Replayed: c.replay}, err
}

// fails lets orders fail.
func (c *controller) fails(err error) {
	c.send = func(context.Context, delivery.Order) (telematics.Command, error) { return telematics.Command{}, err }
}

// ends lets commands end in a state.
func (c *controller) ends(in telematics.State) {
	c.send = func(_ context.Context, o delivery.Order) (telematics.Command, error) {
		command := settled(o, in)
		if err := command.Err(); err != nil {
			return command, err
		}
		return command, nil
	}
}

func (c *controller) Start(ctx context.Context, o *delivery.Order) (delivery.Receipt, error) {
	c.note(*o)
	return c.start(ctx, *o)
}

func (c *controller) SendMany(ctx context.Context, o *delivery.BulkOrder) (telematics.Bulk, bool, error) {
	many := c.many
	many.Start = c.Start
	return many.Send(ctx, o)
}

func (c *controller) note(o delivery.Order) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.orders = append(c.orders, o)
}

func (c *controller) last() delivery.Order {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.orders[len(c.orders)-1]
}

func (c *controller) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.orders)
}

// fleet has vehicles, commands and audit log entries in memory. If err is set, calls return it.
type fleet struct {
	twins    map[telematics.VehicleID]telematics.Twin
	markers  []telematics.Marker
	commands []telematics.Command
	lines    []telematics.Activity
	unknown  []telematics.UnknownUnit
	units    []telematics.ListedUnit
	agencies []telematics.ListedAgency
	stations []telematics.Station
	holders  map[string]telematics.KeyHolders
	edited   []telematics.FleetEdit
	plans    []rental.Plan
	err      error
	block    bool // calls wait until their context ends

	asked struct {
		vehicles   telematics.VehicleQuery
		activities telematics.ActivityQuery
		commands   telematics.CommandQuery
		markers    telematics.MarkerQuery
		units      telematics.UnitQuery
		belongs    int
	}
}

func (f *fleet) broken(ctx context.Context) error {
	if f.block {
		<-ctx.Done()
		return ctx.Err()
	}
	return f.err
}

func (f *fleet) DurableTwin(ctx context.Context, id telematics.VehicleID) (telematics.Twin, error) {
	if err := f.broken(ctx); err != nil {
		return telematics.Twin{}, err
	}
	if twin, ok := f.twins[id]; ok {
		return twin, nil
	}
	return telematics.Twin{}, telematics.NoSuchVehicle(id)
}

func (f *fleet) Record(ctx context.Context, id telematics.VehicleID) (telematics.Twin, error) {
	return f.DurableTwin(ctx, id)
}

func (f *fleet) Belongs(ctx context.Context, id telematics.VehicleID, agency telematics.AgencyID) (bool, error) {
	f.asked.belongs++
	twin, ok := f.twins[id]
	return ok && twin.AgencyID == agency, f.broken(ctx)
}

func (f *fleet) Markers(ctx context.Context, q telematics.MarkerQuery, each func(telematics.Marker) error) error {
	f.asked.markers = q
	for _, m := range f.markers {
		if q.Agency == 0 || q.Agency == m.Agency {
			if err := each(m); err != nil {
				return err
			}
		}
	}
	return f.broken(ctx)
}

func (f *fleet) CountVehicles(ctx context.Context, agency telematics.AgencyID, vehicle telematics.VehicleID) (int, error) {
	n := 0
	for id, t := range f.twins {
		if (agency == 0 || agency == t.AgencyID) && (vehicle == 0 || vehicle == id) {
			n++
		}
	}
	return n, f.broken(ctx)
}

func (f *fleet) Command(ctx context.Context, id telematics.CommandID) (telematics.Command, error) {
	if err := f.broken(ctx); err != nil {
		return telematics.Command{}, err
	}
	for _, c := range f.commands {
		if c.ID == id {
			return c, nil
		}
	}
	return telematics.Command{}, telematics.NoSuchCommand(id)
}

// pageOf returns the items that a query selects, by descending position, which is a number or a
// text; before is zero for the first page.
func pageOf[T any, P cmp.Ordered](items []T, before P, limit int, of func(T) (position P, selected bool)) (found []T) {
	var none P
	for _, item := range items {
		if position, selected := of(item); selected && (before == none || position < before) {
			found = append(found, item)
		}
	}
	slices.SortFunc(found, func(a, b T) int {
		first, _ := of(a)
		second, _ := of(b)
		return cmp.Compare(second, first)
	})
	if limit == 0 { // all
		return found
	}
	return found[:min(limit, len(found))]
}

// of reports whether a query for an agency, or for all, selects what belongs to another one.
func of(query, agency telematics.AgencyID) bool { return query == 0 || query == agency }

func (f *fleet) Twins(ctx context.Context, q telematics.VehicleQuery) ([]telematics.Twin, error) {
	f.asked.vehicles = q
	return pageOf(slices.Collect(maps.Values(f.twins)), q.Before, q.Limit, func(t telematics.Twin) (int64, bool) {
		return int64(t.ID), of(q.Agency, t.AgencyID)
	}), f.broken(ctx)
}

func (f *fleet) VehicleCommands(
	ctx context.Context, id telematics.VehicleID, agency telematics.AgencyID, p telematics.Page,
) ([]telematics.Command, error) {
	return pageOf(f.commands, p.Before, p.Limit, func(c telematics.Command) (int64, bool) {
		return c.Seq, c.Vehicle == id && of(agency, c.Agency)
	}), f.broken(ctx)
}

func (f *fleet) List(ctx context.Context, q telematics.CommandQuery) ([]telematics.Command, error) {
	f.asked.commands = q
	return pageOf(f.commands, positionOf(q.Before), q.Limit, func(c telematics.Command) (string, bool) {
		return positionOf(c.ID), of(q.Agency, c.Agency)
	}), f.broken(ctx)
}

// positionOf returns the position of an id, empty for none.
func positionOf(id uuid.UUID) string {
	if id == uuid.Nil {
		return ""
	}
	return id.String()
}

func (f *fleet) Activities(ctx context.Context, q telematics.ActivityQuery) ([]telematics.Activity, error) {
	f.asked.activities = q
	return pageOf(f.lines, q.Before, q.Limit, func(a telematics.Activity) (int64, bool) {
		return a.ID, of(q.Agency, a.Agency)
	}), f.broken(ctx)
}

func (f *fleet) UnknownUnits(ctx context.Context, p telematics.Page) ([]telematics.UnknownUnit, error) {
	return pageOf(f.unknown, p.Before, p.Limit, func(u telematics.UnknownUnit) (int64, bool) { return u.No, true }), f.broken(ctx)
}

func (f *fleet) ListUnits(ctx context.Context, q telematics.UnitQuery) ([]telematics.ListedUnit, error) {
	f.asked.units = q
	return pageOf(f.units, q.Before, q.Limit, func(u telematics.ListedUnit) (int64, bool) {
		return int64(u.Vehicle.ID), of(q.Agency, u.Vehicle.AgencyID)
	}), f.broken(ctx)
}

func (f *fleet) Agencies(ctx context.Context, q telematics.AgencyQuery) ([]telematics.ListedAgency, error) {
	return pageOf(f.agencies, q.Before, q.Limit, func(a telematics.ListedAgency) (int64, bool) {
		return int64(a.ID), of(q.Agency, a.ID)
	}), f.broken(ctx)
}

func (f *fleet) ListStations(ctx context.Context, q telematics.AgencyQuery) ([]telematics.Station, error) {
	return pageOf(f.stations, q.Before, q.Limit, func(s telematics.Station) (int64, bool) {
		return int64(s.ID), of(q.Agency, s.AgencyID)
	}), f.broken(ctx)
}

func (f *fleet) KeyHolders(ctx context.Context, key string) (telematics.KeyHolders, error) {
	return f.holders[key], f.broken(ctx)
}

// bulks has bulks in memory. If err is set, calls return it.
type bulks struct {
	mu     sync.Mutex
	byID   map[telematics.BulkID]telematics.Bulk
	err    error
	opened int

	lookups int // of keys
}

// Bulks implements httpapi.Bulks: each vehicle has executed its command.
func (b *bulks) Bulks(_ context.Context, q telematics.BulkQuery) ([]telematics.CountedBulk, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := slices.Collect(maps.Values(b.byID))
	return pageOf(slices.Collect(func(yield func(telematics.CountedBulk) bool) {
		for _, bulk := range all {
			yield(telematics.CountedBulk{Bulk: bulk, Outcomes: map[telematics.Outcome]int{telematics.Executed: len(bulk.Vehicles)}})
		}
	}), positionOf(q.Before), q.Limit, func(c telematics.CountedBulk) (string, bool) {
		return positionOf(c.ID), of(q.Agency, c.Actor.Agency)
	}), b.err
}

func (b *bulks) OpenBulk(_ context.Context, bulk telematics.Bulk) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, used := b.made(bulk.Key); used || b.err != nil {
		return used, b.err
	}
	b.byID[bulk.ID] = bulk
	b.opened++
	return false, nil
}

func (b *bulks) made(k *telematics.IdempotencyKey) (telematics.Bulk, bool) {
	for _, bulk := range b.byID {
		if k != nil && bulk.Key != nil && bulk.Key.Key == k.Key && bulk.Key.Subject == k.Subject {
			return bulk, true
		}
	}
	return telematics.Bulk{}, false
}

func (b *bulks) RefuseBulk(ctx context.Context, id telematics.BulkID, items []telematics.BulkItem) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	bulk := b.byID[id]
	bulk.Items = items
	b.byID[id] = bulk
	return b.err
}

func (b *bulks) Bulk(_ context.Context, id telematics.BulkID) (telematics.Bulk, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if bulk, ok := b.byID[id]; ok || b.err != nil {
		return bulk, b.err
	}
	return telematics.Bulk{}, telematics.NoSuchBulk(id)
}

func (b *bulks) FindByKey(_ context.Context, k telematics.IdempotencyKey) (delivery.KeyResult, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lookups++
	bulk, used := b.made(&k)
	if !used || b.err != nil {
		return delivery.KeyResult{}, false, b.err
	}
	return delivery.KeyResult{Bulk: bulk.ID, Fingerprint: bulk.Key.Fingerprint}, true, nil
}

// history has audit log entries in memory, or refuses them.
type history struct {
	mu      sync.Mutex
	lines   []telematics.Activity
	err     error
	omitted int
}

func (h *history) Add(_ context.Context, a telematics.Activity) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err != nil {
		return h.err
	}
	h.lines = append(h.lines, a)
	return nil
}

func (h *history) Record(ctx context.Context, a telematics.Activity) { _ = h.Add(ctx, a) }

func (h *history) Omit(context.Context, telematics.Activity) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.omitted++
}

func (h *history) all() []telematics.Activity {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.lines)
}

// gone is the error of a store whose server is unavailable.
type gone struct{}

func (gone) Error() string     { return "connection refused by secret-host:5432" }
func (gone) Unavailable() bool { return true }

func twin(id telematics.VehicleID, agency telematics.AgencyID, change ...func(*telematics.Twin)) telematics.Twin {
	t := telematics.Twin{Vehicle: telematics.Vehicle{
		ID: id, AgencyID: agency, Unit: "unit-1", Status: telematics.Available, Powertrain: telematics.Combustion,
		Plate: "M-MP 42", Brand: "Volkswagen", Model: "Golf", Year: 2024, Color: "blue", Category: "compact",
		Features: []string{"air_conditioning"}, Actions: slices.Clone(telematics.ControlActions),
	}}
	for _, c := range change {
		c(&t)
	}
	return t
}

// reported returns a snapshot of one report.
func reported(at time.Time, values map[telematics.Field]any) telematics.Snapshot {
	return telematics.Merge(nil, telematics.Report{At: at, Values: values})
}

// Rate is the store's: vehicle 2 is not for rent.
func (f *fleet) Rate(_ context.Context, id telematics.VehicleID) (*rental.Rate, rental.Currency, error) {
	if id == 2 {
		return nil, "EUR", f.err
	}
	return &rental.Rate{Hourly: 1500, Deposit: 20000}, "EUR", f.err
}

// RentalTerms is the store's, with agencies 1 and 2.
func (f *fleet) RentalTerms(_ context.Context, id telematics.AgencyID) ([]rental.Plan, rental.Terms, error) {
	if id > 2 {
		return nil, rental.Terms{}, &telematics.Error{Code: telematics.AgencyNotFound, Message: "There is no agency."}
	}
	return f.plans, rental.Terms{Currency: "EUR", Rules: rental.DefaultRules}, f.err
}

// editAgency sets tariffs to 0.30 a minute, or removes them.
func (f *fleet) editAgency(e telematics.FleetEdit) (telematics.FleetEdited, error) {
	var fields struct{ Tariffs map[string]json.RawMessage }
	if err := json.Unmarshal(e.Fields, &fields); err != nil {
		return telematics.FleetEdited{}, err
	}
	before := len(f.plans)
	for category, tariff := range fields.Tariffs {
		f.plans = slices.DeleteFunc(f.plans, func(p rental.Plan) bool { return p.Category == category })
		if string(tariff) != "null" {
			f.plans = append(f.plans, rental.Plan{Category: category, Version: 1, Minute: 30})
		} else if len(f.plans) == before {
			return telematics.FleetEdited{}, nil
		}
	}
	return telematics.FleetEdited{Changes: []string{"agency 1: changed"}}, nil
}

// Edit is the store's, with vehicles of agency 1 and 2.
func (f *fleet) Edit(_ context.Context, e telematics.FleetEdit) (telematics.FleetEdited, error) {
	f.edited = append(f.edited, e)
	if f.err != nil {
		return telematics.FleetEdited{}, f.err
	}
	if e.Agency != 0 {
		return f.editAgency(e)
	}
	if e.Vehicle == 0 {
		if !e.Entry.Actor.Sees(1) {
			return telematics.FleetEdited{}, &telematics.Error{Code: telematics.StationNotFound, Message: "There is no station."}
		}
		return telematics.FleetEdited{
			Changes: []string{"station 1: name A → B"},
			Station: telematics.Station{ID: e.Station, AgencyID: 1, Name: "B", Address: "C"},
		}, nil
	}
	if t, known := f.twins[e.Vehicle]; known && !e.Entry.Actor.Sees(t.AgencyID) {
		return telematics.FleetEdited{}, telematics.NoSuchVehicle(e.Vehicle)
	}
	if e.New {
		f.twins[e.Vehicle] = twin(e.Vehicle, 1)
	}
	done := telematics.FleetEdited{Changes: []string{"vehicle 42: color blue → red"}}
	if f.twins[e.Vehicle].Status == telematics.Maintenance {
		done.Bookings = new(2)
	}
	return done, nil
}
