package httpapi_test

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"motorpool/telematics"
)

// controller answers orders with a function, and remembers them.
type controller struct {
	mu     sync.Mutex
	orders []telematics.Order
	send   func(context.Context, telematics.Order) (telematics.Command, error)
}

func (c *controller) Send(ctx context.Context, o telematics.Order) (telematics.Command, error) {
	c.mu.Lock()
	c.orders = append(c.orders, o)
	c.mu.Unlock()
	return c.send(ctx, o)
}

func (c *controller) last() telematics.Order {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.orders[len(c.orders)-1]
}

func (c *controller) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.orders)
}

// fleet keeps vehicles, commands and lines in memory. Where err is set it answers nothing else.
type fleet struct {
	twins    map[telematics.VehicleID]telematics.Twin
	commands []telematics.Command
	lines    []telematics.Activity
	err      error
	block    bool // until the context ends

	asked struct {
		vehicles   telematics.VehicleQuery
		activities telematics.ActivityQuery
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

func (f *fleet) VehicleCommands(ctx context.Context, id telematics.VehicleID, agency telematics.AgencyID, p telematics.Page) ([]telematics.Command, error) {
	var found []telematics.Command
	for _, c := range f.commands {
		if c.Vehicle == id && (agency == 0 || c.Agency == agency) && (p.Before == 0 || c.Seq < p.Before) {
			found = append(found, c)
		}
	}
	slices.SortFunc(found, func(a, b telematics.Command) int { return cmp.Compare(b.Seq, a.Seq) })
	return found[:min(p.Limit, len(found))], f.broken(ctx)
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

// history remembers lines, or refuses them.
type history struct {
	mu    sync.Mutex
	lines []telematics.Activity
	err   error
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

func (h *history) all() []telematics.Activity {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.lines)
}

// gone is how a store says that its server is away.
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
