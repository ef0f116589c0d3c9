package httpapi

import (
	"context"
	"net/http"

	"motorpool/httpapi/contract"
	"motorpool/httpapi/errorcode"
	"motorpool/httpapi/request"
	"motorpool/httpapi/resource"
	"motorpool/telematics"
)

// activities answers with the audit log.
type activities struct{ *server }

func (a activities) list(c *request.Call) error {
	p := c.Page("activity")
	found, err := a.Activities.Activities(c.Ctx(), telematics.ActivityQuery{
		Agency:  c.Actor.Agency,
		Vehicle: telematics.VehicleID(c.QueryInteger("vehicle_id")),
		Booking: c.QueryInteger("booking_id"),
		Actor:   c.QueryParam("actor"),
		Action:  c.QueryParam("action"),
		Outcome: telematics.Outcome(c.QueryParam("outcome")),
		Changes: c.QueryParam("changes") == "true",
		From:    c.QueryTime("from"),
		To:      c.QueryTime("to"),
		Page:    p.Query(),
	})
	if err != nil {
		return err
	}
	entries, meta := request.Cut(p, found, func(a telematics.Activity) int64 { return a.ID })
	return c.AnswerWith(http.StatusOK, request.Plural(len(entries), "entry"), resource.List(entries, resource.NewActivity), meta)
}

// notes answers with notes on vehicles and bookings, which are entries of the audit log, and adds
// them.
type notes struct{ *server }

// about returns the entry of a note on the vehicle or the booking that the path names.
func (n notes) about(c *request.Call) (telematics.Activity, error) {
	entry := c.Entry(telematics.NoteAdd, c.VehicleID())
	entry.Booking, entry.Outcome = int64(c.BookingID()), telematics.Executed
	if entry.Booking == 0 {
		twin, err := visibleTwin(c, n.Fleet.Record)
		if err == nil {
			entry.Agency = twin.AgencyID
		}
		return entry, err
	}
	d, err := n.visibleBooking(c)
	if err == nil {
		entry.Agency, entry.Vehicle = d.Agency, d.VehicleID
	}
	return entry, err
}

// list answers GET …/notes. Those of a vehicle include those of its bookings.
func (n notes) list(c *request.Call) error {
	about, err := n.about(c)
	if err != nil {
		return err
	}
	p := c.Page("notes")
	query := telematics.ActivityQuery{
		Agency: c.Actor.Agency, Booking: about.Booking, Action: telematics.NoteAdd, Outcome: telematics.Executed, Page: p.Query(),
	}
	if about.Booking == 0 {
		query.Vehicle = about.Vehicle
	}
	found, err := n.Activities.Activities(c.Ctx(), query)
	if err != nil {
		return err
	}
	listed, meta := request.Cut(p, found, func(a telematics.Activity) int64 { return a.ID })
	return c.AnswerWith(http.StatusOK, request.Plural(len(listed), "note"), resource.List(listed, resource.NewNote), meta)
}

func (n notes) add(c *request.Call) error {
	ctx, cancel := c.Detached(n.ReadBudget)
	defer cancel()
	entry, err := n.about(c)
	if err != nil {
		return n.audit.refused(ctx, entry, err)
	}
	entry.Note = c.Text("text")
	if err := n.audit.History.Add(ctx, entry); err != nil {
		return err
	}
	return c.AnswerWith(http.StatusCreated, "The note is added.", resource.NewNote(entry), nil)
}

// checkNote checks what the contract cannot express.
func checkNote(c *request.Call, wrong *contract.FieldErrors) error {
	checkText(c, "text", wrong)
	return nil
}

// audit adds the entries of handlers to the audit log [LAW-9].
type audit struct{ *request.Audit }

// recordDurably adds an entry, and blocks until it is durable. Call it before the answer to a read.
func (a audit) recordDurably(c *request.Call, entry telematics.Activity) error {
	return a.History.Add(c.Ctx(), entry)
}

// recordList adds the entry of a read of a list of vehicles or units, with its filter and the
// number of things in the answer. It blocks until the entry is durable.
func (a audit) recordList(c *request.Call, things string, n int, filters ...string) error {
	entry := c.Entry(telematics.VehiclesRead, 0)
	if agency := c.NamedAgency(); c.Actor.Sees(agency) {
		entry.Agency = agency
	}
	entry.Outcome, entry.Details = telematics.Executed, map[string]any{"filter": filterOf(c, filters...), things: n}
	return a.recordDurably(c, entry)
}

// filterOf returns the agency of a query, and some of its parameters, for the audit log.
func filterOf(c *request.Call, names ...string) map[string]any {
	filter := map[string]any{}
	for _, name := range names {
		if value := c.QueryParam(name); value != "" {
			filter[name] = value
		}
	}
	if agency := c.NamedAgency(); agency != 0 {
		filter["agency_id"] = int64(agency)
	}
	return filter
}

// refused records that a request has changed nothing, or that this is unknown, and returns its
// error.
func (a audit) refused(ctx context.Context, entry telematics.Activity, refusal error) error {
	entry.Code = request.AsError(refusal).Code
	entry.Outcome = notChanged(entry.Code)
	a.RecordLimited(ctx, entry)
	return refusal
}

// notChanged returns the outcome of a change that failed.
func notChanged(code telematics.Code) telematics.Outcome {
	if code == errorcode.ServiceUnavailable || code == telematics.Internal {
		return telematics.MayHave // the change may have been written before the error
	}
	return telematics.NotExecuted
}

// commandsRead records a read of commands, if one of them includes a report of its unit. The entry
// states which commands were requested.
func (a audit) commandsRead(c *request.Call, commands []telematics.Command, entry telematics.Activity) error {
	vehicles := map[telematics.VehicleID]bool{}
	for _, command := range commands {
		if command.Reported != nil {
			vehicles[command.Vehicle] = true
		}
	}
	if len(vehicles) == 0 {
		return nil
	}
	entry.Outcome = telematics.Executed
	if entry.Details == nil {
		entry.Details = map[string]any{}
	}
	entry.Details["vehicles"] = len(vehicles)
	return a.recordDurably(c, entry)
}
