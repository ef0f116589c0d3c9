package httpapi

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"motorpool/httpapi/contract"
	"motorpool/httpapi/request"
	"motorpool/httpapi/resource"
	"motorpool/rental"
	"motorpool/telematics"
	"motorpool/telematics/samples"
)

// telemetry answers with the history of telemetry.
type telemetry struct{ *server }

// historyRange returns the period of a query, by default the last day.
func historyRange(c *request.Call) (from, to time.Time) {
	to = c.QueryTime("to")
	if to.IsZero() {
		to = c.Now()
	}
	if from = c.QueryTime("from"); from.IsZero() {
		from = to.Add(-defaultHistory)
	}
	return from.UTC(), to.UTC()
}

// historyFields returns the fields of a query, by default all.
func historyFields(c *request.Call) []string {
	if fields := listOf[string](c.QueryParam("fields")); fields != nil {
		return fields
	}
	return resource.HistoryFields
}

// checkHistory checks what the contract cannot express.
func checkHistory(c *request.Call, wrong *contract.FieldErrors) error {
	for _, field := range historyFields(c) {
		if !slices.Contains(resource.HistoryFields, field) {
			wrong.AddIfValid(
				"fields",
				fmt.Sprintf(
					"must be one or more of %s, separated by commas; %.40q is not one of them",
					strings.Join(resource.HistoryFields, ", "), field,
				),
			)
		}
	}
	if from, to := historyRange(c); !from.Before(to) {
		wrong.AddIfValid("from", "must be before to, which defaults to now")
	} else if to.Sub(from) > maxHistory {
		wrong.AddIfValid("from", fmt.Sprintf("must be at most %d days before to", int(maxHistory/(24*time.Hour))))
	}
	return nil
}

// buckets returns the requested number of buckets, reduced so that none is shorter than the
// shortest interval of samples.
func buckets(c *request.Call, from, to time.Time) int {
	requested := int(cmp.Or(c.QueryInteger("points"), defaultPoints))
	return max(1, min(requested, maxPoints, int(to.Sub(from)/samples.Driving)))
}

func (t telemetry) history(c *request.Call) error {
	from, to := historyRange(c)
	fields := historyFields(c)
	twin, err := t.recordRead(c, strings.Join(fields, ","), from, to)
	if err != nil {
		return err
	}
	query := samples.Query{Vehicle: twin.ID, Agency: c.Actor.Agency, From: from, To: to, Buckets: buckets(c, from, to)}
	found, err := t.Telemetry.Telemetry(c.Ctx(), query)
	if err != nil {
		return err
	}
	return c.Answer(request.Plural(len(found), "point"), resource.NewHistory(query, t.Telemetry.TelemetryDays(), fields, found))
}

// recordRead returns the vehicle that the path names. It records the read before the answer
// [LAW-9].
func (t telemetry) recordRead(c *request.Call, fields string, from, to time.Time) (telematics.Twin, error) {
	entry := c.Entry(telematics.HistoryRead, c.VehicleID())
	entry.Outcome = telematics.Executed
	entry.Details = map[string]any{"fields": fields, "from": resource.Timestamp(from), "to": resource.Timestamp(to)}
	twin, err := visibleTwin(c, t.Fleet.Record)
	if err != nil {
		if entry.Code = request.AsError(err).Code; entry.Code != telematics.VehicleNotFound {
			return twin, err
		}
		entry.Outcome = telematics.NotExecuted
	} else {
		entry.Agency = twin.AgencyID
	}
	return twin, cmp.Or(t.audit.recordDurably(c, entry), err)
}

func (t telemetry) trips(c *request.Call) error {
	twin, trips, err := t.findTrips(c)
	if err != nil {
		return err
	}
	from, to := historyRange(c)
	used, err := t.Bookings.FindBookings(c.Ctx(), rental.BookingQuery{Vehicle: c.VehicleID(), Agency: c.Actor.Agency, From: from, To: to})
	if err != nil {
		return err
	}
	return c.AnswerWith(http.StatusOK, request.Plural(len(trips), "trip"), resource.List(trips, func(trip samples.Trip) resource.Trip {
		return resource.NewTrip(trip, used, func(p telematics.Position) *string {
			return resource.OrNull(t.Places.Address(twin.AgencyID, p, true))
		})
	}), tripsMeta{t.Telemetry.TelemetryDays()})
}

type tripsMeta struct {
	RetentionDays int `json:"retention_days"`
}

// gpx answers GET /admin/vehicles/{vehicle}/trips.gpx.
func (t telemetry) gpx(c *request.Call) error {
	_, trips, err := t.findTrips(c)
	if err != nil {
		return err
	}
	from, _ := historyRange(c)
	file := fmt.Sprintf("vehicle-%d-%s.gpx", c.VehicleID(), from.Format("2006-01-02-1504"))
	c.SetHeader(echo.HeaderContentDisposition, "attachment; filename="+file)
	return c.Blob(http.StatusOK, "application/gpx+xml", resource.NewGPX(trips))
}

// findTrips returns the vehicle that the path names, and its trips. It records the read.
func (t telemetry) findTrips(c *request.Call) (telematics.Twin, []samples.Trip, error) {
	from, to := historyRange(c)
	twin, err := t.recordRead(c, "position,speed", from, to)
	if err != nil {
		return twin, nil, err
	}
	found, err := t.Telemetry.Telemetry(c.Ctx(), samples.Query{
		Vehicle: twin.ID, Agency: c.Actor.Agency, From: from, To: to, Buckets: max(1, int(to.Sub(from)/samples.Driving)),
	})
	return twin, samples.Trips(found), err
}

// track answers GET /admin/bookings/{booking}/track: where the vehicle was from the start of the
// booking to its end.
func (t telemetry) track(c *request.Call) error {
	d, err := t.visibleBooking(c)
	if err != nil {
		return err
	}
	entry := c.Entry(telematics.HistoryRead, d.VehicleID)
	entry.Booking, entry.Agency, entry.Outcome = int64(d.ID), d.Agency, telematics.Executed
	if err := t.audit.recordDurably(c, entry); err != nil {
		return err
	}
	from, to := d.ActualStart, d.ActualEnd
	if to.IsZero() {
		to = c.Now()
	}
	var found []samples.Bucket
	var width time.Duration
	if !from.IsZero() && from.Before(to) {
		query := samples.Query{Vehicle: d.VehicleID, Agency: d.Agency, From: from, To: to, Buckets: buckets(c, from, to)}
		width = query.Width()
		if found, err = t.Telemetry.Telemetry(c.Ctx(), query); err != nil {
			return err
		}
	}
	return c.Answer("The track of the booking "+d.Reference+".", resource.NewTrack(d.Booking, t.Telemetry.TelemetryDays(), width, found))
}
