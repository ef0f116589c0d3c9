package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"motorpool/httpapi/resource"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// vehicles answers with vehicles and their state.
type vehicles struct {
	fleet      Fleet
	places     Places // nil: no address is known
	controller Controller
	audit      *audit
	limits     *limits
	watches    Watches
	budget     time.Duration // of a refresh
	readBudget time.Duration
}

// visibleTwin returns the vehicle that the path names. One of another agency is reported as
// missing.
func visibleTwin(
	c *call, read func(context.Context, telematics.VehicleID) (telematics.Twin, error),
) (telematics.Twin, error) {
	twin, err := read(c.ctx(), c.vehicleID())
	if err == nil && !c.actor.Sees(twin.AgencyID) {
		return telematics.Twin{}, telematics.NoSuchVehicle(twin.ID)
	}
	return twin, err
}

// get answers GET /admin/vehicles/{vehicle}.
func (v vehicles) get(c *call) error {
	twin, err := visibleTwin(c, v.fleet.Twin)
	if err != nil {
		return err
	}
	return c.answer("The record of the vehicle.", resource.NewVehicle(twin))
}

// list answers GET /admin/vehicles.
func (v vehicles) list(c *call) error {
	p := c.page("vehicles")
	agency, visible := c.queryAgency()
	query := telematics.VehicleQuery{
		Agency:       agency,
		Status:       telematics.VehicleStatus(c.QueryParam("status")),
		Connectivity: telematics.PresenceStatus(c.QueryParam("connectivity")),
		Text:         c.QueryParam("q"),
		Page:         p.query(),
	}
	var found []telematics.Twin
	if visible {
		var err error
		if found, err = v.fleet.Twins(c.ctx(), query); err != nil {
			return err
		}
	}
	twins, meta := cut(p, found, func(t telematics.Twin) int64 { return int64(t.ID) })
	if err := v.audit.recordList(c, query.Agency, visible, "vehicles", len(twins), "status", "connectivity", "q"); err != nil {
		return err
	}
	now := c.now()
	return c.answerWith(plural(len(twins), "vehicle"),
		resource.List(twins, func(t telematics.Twin) resource.Marker { return resource.NewMarker(t, v.address(t), now) }), meta)
}

// Sources of a vehicle status.
const (
	fromCache = "cache" // the latest known state
	fromUnit  = "live"  // the unit's answer to this request
)

// status answers GET /admin/vehicles/{vehicle}/status with the latest known state, or, with
// refresh=true, after the unit has reported. A unit has longer for its answer than a read has.
func (v vehicles) status(c *call) error {
	var refreshed *telematics.Command // nil: the unit was not queried
	if refreshes(c.Request()) {
		var err error
		if refreshed, err = v.refresh(c); err != nil {
			return err
		}
	}
	return within(v.readBudget, func(c *call) error { return v.answerStatus(c, refreshed) })(c)
}

// answerStatus answers with the status, and with what the unit has just reported. It records the
// read before the answer [LAW-9].
func (v vehicles) answerStatus(c *call, refreshed *telematics.Command) error {
	twin, err := visibleTwin(c, v.fleet.Twin)
	if err != nil && asError(err).Code != telematics.VehicleNotFound {
		return err
	}
	if recordErr := v.audit.recordDurably(c, statusEntry(c, twin, err)); recordErr != nil {
		return recordErr
	}
	if err != nil {
		return err
	}
	source, message := fromCache, "The latest known status of the vehicle."
	if refreshed != nil {
		if refreshed.Reported != nil {
			source, message = fromUnit, "The status of the vehicle, as its unit has just reported it."
		}
		twin = withReported(twin, refreshed)
		v.watches.Briefly(twin.Vehicle)
	}
	return c.answerWith(message, resource.NewStatus(twin, v.address(twin), c.now()), resource.NewStatusMeta(twin, source))
}

// statusEntry returns the audit log entry of a read; a zero twin: of an unknown vehicle.
func statusEntry(c *call, twin telematics.Twin, failure error) telematics.Activity {
	entry := c.entry(telematics.StatusRead, c.vehicleID())
	entry.Outcome = telematics.Executed
	if failure != nil {
		entry.Outcome, entry.Code = telematics.NotExecuted, asError(failure).Code
	}
	if twin.ID != 0 {
		entry.Agency = twin.AgencyID
	}
	return entry
}

// refreshes reports whether a request wants the unit to report first. The contract accepts no other
// spelling of true.
func refreshes(r *http.Request) bool {
	return r.Method != http.MethodHead && r.URL.Query().Get("refresh") == "true"
}

// refresh makes the vehicle's unit report its state, and returns the command with the report. The
// controller adds the command's audit log entry; if it fails, the entry of the failed read is added
// here, now or as soon as the audit log is available [LAW-9].
func (v vehicles) refresh(c *call) (*telematics.Command, error) {
	preferences := readPreferences(c.Request().Header)
	preferences.async = false // there would be no state to answer with
	receipt, err := v.controller.Send(c.ctx(), &delivery.Order{
		Vehicle: c.vehicleID(), Action: telematics.ReportState, Budget: cmp.Or(preferences.wait, v.budget),
		Actor: c.actor, RequestID: c.id,
	})
	c.ordered(receipt, err)
	preferences.apply(c)
	if err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx()), v.readBudget)
		defer cancel()
		twin, missing := v.fleet.Record(ctx, c.vehicleID())
		if missing != nil || !c.actor.Sees(twin.AgencyID) {
			twin = telematics.Twin{}
		}
		v.audit.recordLater(ctx, statusEntry(c, twin, err))
	}
	return receipt.Command, err
}

// withReported returns the vehicle merged with the report of a refresh. The store has it too,
// unless writing it took too long.
func withReported(t telematics.Twin, c *telematics.Command) telematics.Twin {
	if c.Reported != nil {
		before := t.Snapshot
		t.Snapshot = telematics.Merge(before, *c.Reported)
		for field, reading := range t.Snapshot {
			t.Unstored = t.Unstored || reading.At.After(before[field].At)
		}
	}
	t.Contact = t.Contact.Heard(c.Completed)
	return t
}

// address returns the address of a vehicle; nil: unknown.
func (v vehicles) address(t telematics.Twin) *string {
	position, ok := t.Snapshot.For(t.Powertrain).Position()
	if !ok || v.places == nil {
		return nil
	}
	return resource.OrNull(v.places.Address(t.AgencyID, position))
}
