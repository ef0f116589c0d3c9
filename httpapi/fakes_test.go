package httpapi_test

import (
	"cmp"
	"context"
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

func (f *fleet) Twin(ctx context.Context, id telematics.VehicleID) (telematics.Twin, error) {
	if err := f.broken(ctx); err != nil {
		return telematics.Twin{}, err
	}
	if twin, ok := f.twins[id]; ok {
		return twin, nil
	}
	return telematics.Twin{}, telematics.NoSuchVehicle(id)
}

func (f *fleet) Record(ctx context.Context, id telematics.VehicleID) (telematics.Twin, error) {
	return f.Twin(ctx, id)
}

func (f *fleet) Belongs(ctx context.Context, id telematics.VehicleID, agency telematics.AgencyID) (bool, error) {
	f.asked.belongs++
	twin, ok := f.twins[id]
	return ok && twin.AgencyID == agency, f.broken(ctx)
}

func (f *fleet) Twins(ctx context.Context, q telematics.VehicleQuery) ([]telematics.Twin, error) {
	f.asked.vehicles = q
	var found []telematics.Twin
	for _, t := range f.twins {
		if (q.Agency == 0 || q.Agency == t.AgencyID) && (q.Before == 0 || int64(t.ID) < q.Before) {
			found = append(found, t)
		}
	}
	slices.SortFunc(found, func(a, b telematics.Twin) int { return cmp.Compare(b.ID, a.ID) })
	return found[:min(q.Limit, len(found))], f.broken(ctx)
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

func (f *fleet) VehicleCommands(
	ctx context.Context, id telematics.VehicleID, agency telematics.AgencyID, p telematics.Page,
) ([]telematics.Command, error) {
	var found []telematics.Command
	for _, c := range f.commands {
		if c.Vehicle == id && (agency == 0 || c.Agency == agency) && (p.Before == 0 || c.Seq < p.Before) {
			found = append(found, c)
		}
	}
	slices.SortFunc(found, func(a, b telematics.Command) int { return cmp.Compare(b.Seq, a.Seq) })
	return found[:min(p.Limit, len(found))], f.broken(ctx)
}

func (f *fleet) List(ctx context.Context, q telematics.CommandQuery) ([]telematics.Command, error) {
	f.asked.commands = q
	var found []telematics.Command
	for _, c := range f.commands {
		if (q.Agency == 0 || c.Agency == q.Agency) && (q.Before == uuid.Nil || c.ID.String() < q.Before.String()) {
			found = append(found, c)
		}
	}
	slices.SortFunc(found, func(a, b telematics.Command) int { return cmp.Compare(b.ID.String(), a.ID.String()) })
	return found[:min(q.Limit, len(found))], f.broken(ctx)
}

func (f *fleet) Activities(ctx context.Context, q telematics.ActivityQuery) ([]telematics.Activity, error) {
	f.asked.activities = q
	var found []telematics.Activity
	for _, a := range slices.Backward(f.lines) {
		if (q.Agency == 0 || q.Agency == a.Agency) && (q.Before == 0 || a.ID < q.Before) {
			found = append(found, a)
		}
	}
	return found[:min(q.Limit, len(found))], f.broken(ctx)
}

func (f *fleet) UnknownUnits(ctx context.Context, p telematics.Page) ([]telematics.UnknownUnit, error) {
	var found []telematics.UnknownUnit
	for _, s := range slices.Backward(f.unknown) {
		if p.Before == 0 || s.No < p.Before {
			found = append(found, s)
		}
	}
	return found[:min(p.Limit, len(found))], f.broken(ctx)
}

func (f *fleet) ListUnits(ctx context.Context, q telematics.UnitQuery) ([]telematics.ListedUnit, error) {
	f.asked.units = q
	var found []telematics.ListedUnit
	for _, u := range slices.Backward(f.units) {
		if (q.Agency == 0 || q.Agency == u.Vehicle.AgencyID) && (q.Before == 0 || int64(u.Vehicle.ID) < q.Before) {
			found = append(found, u)
		}
	}
	return found[:min(q.Limit, len(found))], f.broken(ctx)
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

func (f *fleet) Agencies(ctx context.Context, q telematics.AgencyQuery) ([]telematics.ListedAgency, error) {
	return pageOf(f.agencies, q, func(a telematics.ListedAgency) (int64, telematics.AgencyID) { return int64(a.ID), a.ID }), f.broken(ctx)
}

func (f *fleet) ListStations(ctx context.Context, q telematics.AgencyQuery) ([]telematics.Station, error) {
	return pageOf(f.stations, q, func(s telematics.Station) (int64, telematics.AgencyID) { return int64(s.ID), s.AgencyID }), f.broken(ctx)
}

// pageOf returns the items, in ascending order, that a query selects.
func pageOf[T any](items []T, q telematics.AgencyQuery, of func(T) (int64, telematics.AgencyID)) (found []T) {
	for _, item := range slices.Backward(items) {
		if id, agency := of(item); (q.Agency == 0 || q.Agency == agency) && (q.Before == 0 || id < q.Before) && len(found) < q.Limit {
			found = append(found, item)
		}
	}
	return found
}

// Rate is the store's: vehicle 2 is not for rent.
func (f *fleet) Rate(_ context.Context, id telematics.VehicleID) (*rental.Rate, rental.Currency, error) {
	if id == 2 {
		return nil, "EUR", f.err
	}
	return &rental.Rate{Hourly: 1500, Deposit: 20000}, "EUR", f.err
}

// Edit is the store's, with vehicles of agency 1 and 2.
func (f *fleet) Edit(_ context.Context, e telematics.FleetEdit) (telematics.FleetEdited, error) {
	f.edited = append(f.edited, e)
	if f.err != nil {
		return telematics.FleetEdited{}, f.err
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
	return telematics.FleetEdited{Changes: []string{"vehicle 42: color blue → red"}}, nil
}
