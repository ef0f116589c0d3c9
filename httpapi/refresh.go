package httpapi

import (
	"cmp"
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"motorpool/telematics"
)

// refreshes reports whether a request asks for the unit's own word, and not only for what
// is known. The contract takes no other spelling.
func refreshes(r *http.Request) bool {
	return r.Method != http.MethodHead && r.URL.Query().Get("refresh") == "true"
}

// refresh asks the vehicle's unit to report its state, and returns what it reported. The
// controller adds the command's audit log entry; the entry of the read that fails
// with it is written here [LAW-9].
func (s *server) refresh(c echo.Context) (*telematics.Command, error) {
	call := callOf(c)
	vehicle, err := vehicleParam(c)
	if err != nil {
		return nil, err
	}
	preferences := readPreferences(c.Request().Header)
	preferences.async = false // there would be no state to answer with
	receipt, err := s.Controller.Send(c.Request().Context(), &telematics.Order{
		Vehicle: vehicle, Action: telematics.ReportState, Budget: cmp.Or(preferences.wait, s.Budget),
		Actor: call.actor, RequestID: call.id,
	})
	preferences.apply(c)
	if err != nil {
		s.recordFailedRefresh(c, vehicle, err)
	}
	return receipt.Command, err
}

// recordFailedRefresh writes down a read that has told nothing: like a refusal, now or as soon
// as the history takes it.
func (s *server) recordFailedRefresh(c echo.Context, vehicle telematics.VehicleID, failure error) {
	call := callOf(c)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Request().Context()), s.ReadBudget)
	defer cancel()
	line := call.line(telematics.StatusRead, vehicle, s.Now())
	line.Outcome, line.Code = telematics.NotExecuted, asError(failure).Code
	if twin, err := s.Fleet.Twin(ctx, vehicle); err == nil && call.actor.Sees(twin.AgencyID) {
		line.Agency = twin.AgencyID
	}
	s.Refusals.Note(ctx, line)
}

// withReported returns the vehicle with what its unit has just reported. The record has it too, unless
// it was slow: a caller that asked the unit must not be answered from before.
func withReported(t telematics.Twin, c *telematics.Command) telematics.Twin {
	if c.Reported != nil {
		t.Snapshot = telematics.Merge(t.Snapshot, *c.Reported)
	}
	t.Contact = t.Contact.Heard(c.Completed)
	return t
}
