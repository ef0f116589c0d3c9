package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"motorpool/httpapi/contract"
	"motorpool/httpapi/request"
	"motorpool/httpapi/resource"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// vehicles answers with vehicles and their state.
type vehicles struct{ *server }

// visibleTwin returns the vehicle that the path names. One of another agency is reported as
// missing.
func visibleTwin(
	c *request.Call, read func(context.Context, telematics.VehicleID) (telematics.Twin, error),
) (telematics.Twin, error) {
	twin, err := read(c.Ctx(), c.VehicleID())
	if err == nil && !c.Actor.Sees(twin.AgencyID) {
		return telematics.Twin{}, telematics.NoSuchVehicle(twin.ID)
	}
	return twin, err
}

func (v vehicles) get(c *request.Call) error {
	twin, err := visibleTwin(c, v.Fleet.DurableTwin)
	if err != nil {
		return err
	}
	rate, currency, err := v.Editor.Rate(c.Ctx(), twin.ID)
	if err != nil {
		return err
	}
	return c.Answer("Vehicle found.", resource.NewVehicle(twin, rate, currency))
}

func (v vehicles) list(c *request.Call) error {
	p := c.Page("vehicles")
	found, err := v.Fleet.Twins(c.Ctx(), telematics.VehicleQuery{
		Agency:       c.QueryAgency(),
		IDs:          queryIDs(c.QueryParam("ids")),
		Status:       telematics.VehicleStatus(c.QueryParam("status")),
		Connectivity: telematics.PresenceStatus(c.QueryParam("connectivity")),
		Text:         c.QueryParam("q"),
		Page:         p.Query(),
	})
	if err != nil {
		return err
	}
	twins, meta := request.Cut(p, found, func(t telematics.Twin) int64 { return int64(t.ID) })
	if err := v.audit.recordList(c, "vehicles", len(twins), "status", "connectivity", "q", "ids"); err != nil {
		return err
	}
	now := c.Now()
	return c.AnswerWith(http.StatusOK, request.Plural(len(twins), "vehicle"),
		resource.List(twins, func(t telematics.Twin) resource.Marker { return resource.NewMarker(t, v.address(t), now) }), meta)
}

// queryIDs returns the vehicles that a list separated by commas names; nil: there is no list.
func queryIDs(text string) (ids []telematics.VehicleID) {
	if text == "" {
		return nil
	}
	for part := range strings.SplitSeq(text, ",") {
		id, _ := contract.ParseInteger(part) // the schema has checked it
		ids = append(ids, telematics.VehicleID(id))
	}
	return ids
}

// Sources of a vehicle status.
const (
	fromCache = "cache" // the latest known state
	fromUnit  = "live"  // the unit's answer to this request
)

// status answers GET /admin/vehicles/{vehicle}/status with the latest known state, or, with
// refresh=true, after the unit has reported. A unit has longer for its answer than a read has.
func (v vehicles) status(c *request.Call) error {
	var refreshed *telematics.Command // nil: the unit was not queried
	if c.WantsRefresh() {
		var err error
		if refreshed, err = v.refresh(c); err != nil {
			return err
		}
	}
	return request.Within(v.ReadBudget, func(c *request.Call) error { return v.answerStatus(c, refreshed) })(c)
}

// answerStatus answers with the status, and with what the unit has just reported. It records the
// read before the answer [LAW-9].
func (v vehicles) answerStatus(c *request.Call, refreshed *telematics.Command) error {
	twin, err := visibleTwin(c, v.Fleet.DurableTwin)
	if err != nil && request.AsError(err).Code != telematics.VehicleNotFound {
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
		v.Watches.Briefly(twin.Vehicle)
	}
	return c.AnswerWith(http.StatusOK, message, resource.NewStatus(twin, v.address(twin), c.Now()), resource.NewStatusMeta(twin, source))
}

// statusEntry returns the audit log entry of a read; a zero twin: of an unknown vehicle.
func statusEntry(c *request.Call, twin telematics.Twin, failure error) telematics.Activity {
	entry := c.Entry(telematics.StatusRead, c.VehicleID())
	entry.Outcome = telematics.Executed
	if failure != nil {
		entry.Outcome, entry.Code = telematics.NotExecuted, request.AsError(failure).Code
	}
	if twin.ID != 0 {
		entry.Agency = twin.AgencyID
	}
	return entry
}

// refresh makes the vehicle's unit report its state, and returns the command with the report. The
// controller adds the command's audit log entry; if it fails, the entry of the failed read is added
// here, now or as soon as the audit log is available [LAW-9].
func (v vehicles) refresh(c *request.Call) (*telematics.Command, error) {
	preferences := readPreferences(c.Request().Header)
	preferences.async = false // there would be no state to answer with
	receipt, err := v.Controller.Send(c.Ctx(), &delivery.Order{
		Vehicle: c.VehicleID(), Action: telematics.ReportState, Budget: cmp.Or(preferences.wait, v.Budget),
		Actor: c.Actor, RequestID: c.ID,
	})
	c.Ordered(receipt, err)
	preferences.apply(c)
	if err != nil {
		ctx, cancel := c.Detached(v.ReadBudget)
		defer cancel()
		twin, missing := v.Fleet.Record(ctx, c.VehicleID())
		if missing != nil || !c.Actor.Sees(twin.AgencyID) {
			twin = telematics.Twin{}
		}
		v.audit.RecordLater(ctx, statusEntry(c, twin, err))
	}
	return receipt.Command, err
}

// withReported returns the vehicle merged with the report of a refresh. The store has it too,
// unless writing it took too long.
func withReported(t telematics.Twin, c *telematics.Command) telematics.Twin {
	if c.Reported != nil {
		before := t.Snapshot
		t.Snapshot = telematics.Merge(before, *c.Reported)
		for field, reading := range t.Snapshot.All() {
			t.Unstored = t.Unstored || reading.At.After(before.Of(field).At)
		}
	}
	t.Contact = t.Contact.Heard(c.Completed)
	return t
}

// address returns the address of a vehicle; nil: unknown.
func (v vehicles) address(t telematics.Twin) *string {
	position, ok := t.Snapshot.Position()
	if !ok {
		return nil
	}
	kmh := t.Snapshot.Number(telematics.SpeedKmh)
	return resource.OrNull(v.Places.Address(t.AgencyID, position, kmh == nil || *kmh <= telematics.MovingKmh))
}

// fleetEdits adds and changes vehicles and stations, and changes tariffs and rental rules.
type fleetEdits struct{ *server }

type editMeta struct {
	Changes  []string `json:"changes"`
	Bookings *int     `json:"bookings_in_maintenance,omitempty"`
}

func (f fleetEdits) vehicle(c *request.Call) error {
	e := newEdit(c, telematics.VehicleAdd, telematics.VehicleChange)
	if e.Vehicle = c.VehicleID(); e.New {
		e.Vehicle = telematics.VehicleID(c.WholeNumber("id"))
	}
	if e.Vehicle == 0 {
		return telematics.NoSuchVehicle(0)
	}
	e.Entry.Vehicle = e.Vehicle
	return f.edit(c, e, func(ctx context.Context, done telematics.FleetEdited) error {
		twin, err := f.Fleet.DurableTwin(ctx, e.Vehicle)
		if err != nil {
			return err
		}
		rate, currency, err := f.Editor.Rate(ctx, e.Vehicle)
		if err != nil {
			return err
		}
		return answerEdit(c, e.New, fmt.Sprintf("vehicles/%d", e.Vehicle), done, resource.NewVehicle(twin, rate, currency))
	})
}

func (f fleetEdits) station(c *request.Call) error {
	e := newEdit(c, telematics.StationAdd, telematics.StationChange)
	if e.Station = telematics.StationID(c.PathInteger("station")); e.New {
		e.Station = telematics.StationID(c.WholeNumber("id"))
	}
	return f.edit(c, e, func(_ context.Context, done telematics.FleetEdited) error {
		return answerEdit(c, e.New, "", done, resource.NewStation(done.Station))
	})
}

func newEdit(c *request.Call, add, change string) telematics.FleetEdit {
	e := telematics.FleetEdit{New: c.Request().Method == http.MethodPost, Fields: object(c.Body)}
	action := change
	if e.New {
		action = add
	}
	e.Entry = c.Entry(action, 0)
	return e
}

// object returns a body that is an object, or nothing: then an empty object.
func object(body []byte) json.RawMessage {
	if text := bytes.TrimSpace(body); len(text) == 0 || string(text) == "null" {
		return json.RawMessage("{}")
	}
	return body
}

// edit carries out an edit, which ends even if the caller disconnects, and records a refusal.
func (f fleetEdits) edit(c *request.Call, e telematics.FleetEdit, answer func(context.Context, telematics.FleetEdited) error) error {
	ctx, cancel := c.Detached(f.ReadBudget)
	defer cancel()
	done, err := f.Editor.Edit(ctx, e)
	if err = asFields(err); err != nil {
		return f.audit.refused(ctx, e.Entry, err)
	}
	return answer(ctx, done)
}

func answerEdit(c *request.Call, added bool, path string, done telematics.FleetEdited, body any) error {
	status, message := http.StatusOK, request.Plural(len(done.Changes), "change")
	if added {
		status, message = http.StatusCreated, "Added."
		if path != "" {
			c.SetHeader(echo.HeaderLocation, "/api/v1/admin/"+path)
		}
	}
	return c.AnswerWith(status, message, body, editMeta{append([]string{}, done.Changes...), done.Bookings})
}

// checkEdit refuses to an administrator of one agency what concerns others: their vehicles and
// stations, and units, which may be another agency's.
func checkEdit(c *request.Call, _ *contract.FieldErrors) error {
	var named map[string]json.RawMessage
	_ = json.Unmarshal(c.Body, &named) // another body has been refused
	if agency := telematics.AgencyID(c.WholeNumber("agency_id")); agency != 0 && !c.Actor.Sees(agency) {
		return request.Forbidden(
			"Your access token is for agency %d; it cannot change vehicles and stations of another one.", c.Actor.Agency,
		)
	}
	for _, field := range []string{"unit", "protocol", "installation"} {
		if _, ok := named[field]; ok && c.Actor.Agency != 0 {
			return request.Forbidden(
				"Your access token is for agency %d; %s can be changed only by administrators of all agencies, "+
					"since a unit may belong to another agency.", c.Actor.Agency, field,
			)
		}
	}
	return nil
}
