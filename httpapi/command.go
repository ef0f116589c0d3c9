package httpapi

import (
	"slices"
	"strings"
	"time"

	"motorpool/httpapi/contract"
	"motorpool/telematics"
)

// commandBody is a command, the same wherever it appears.
type commandBody struct {
	ID           string              `json:"id"`
	VehicleID    int64               `json:"vehicle_id"`
	Action       telematics.Action   `json:"action"`
	Parameters   *attentionBody      `json:"parameters"`
	State        telematics.State    `json:"state"`
	Outcome      *telematics.Outcome `json:"outcome"` // null while open
	RequestedBy  string              `json:"requested_by"`
	RequestedAt  string              `json:"requested_at"`
	SentAt       *string             `json:"sent_at"`
	ReceivedAt   *string             `json:"received_at"`
	CompletedAt  *string             `json:"completed_at"`
	Deadline     string              `json:"deadline"`
	ExpiresAt    string              `json:"expires_at"`
	Attempts     int                 `json:"attempts"`
	PublishedAt  []string            `json:"published_at"`
	LatencyMS    *int64              `json:"latency_ms"`
	Late         bool                `json:"late"`
	Contradicted bool                `json:"contradicted"`
	Reason       *string             `json:"reason"`
	Detail       *string             `json:"detail"`
	Reported     map[string]any      `json:"reported"`
	Assurance    promisesBody        `json:"assurance"`
}

type attentionBody struct {
	Signal     telematics.Signal `json:"signal"`
	DurationMS int64             `json:"duration_ms"`
}

func newCommandBody(c telematics.Command) commandBody {
	body := commandBody{
		ID: c.ID.String(), VehicleID: int64(c.Vehicle), Action: c.Action, Parameters: newAttentionBody(c.Attention),
		State: c.State, Outcome: orNull(c.State.Outcome()),
		RequestedBy: c.Actor.Subject, RequestedAt: timestamp(c.Requested),
		SentAt: timestampOrNull(c.SentAt), ReceivedAt: timestampOrNull(c.ReceivedAt), CompletedAt: timestampOrNull(c.Completed),
		Deadline: timestamp(c.Deadline), ExpiresAt: timestamp(c.Expires()), Attempts: c.Attempts, PublishedAt: bodies(c.Publications(), timestamp), Late: c.Late, Contradicted: c.Contradicted,
		Reason: orNull(c.Reason), Detail: orNull(c.Detail), Assurance: promisesBody(c.Assurance),
	}
	if !c.Completed.IsZero() {
		latency := c.Latency().Milliseconds()
		body.LatencyMS = &latency
	}
	if c.Reported != nil {
		body.Reported = c.Reported.Nested()
	}
	return body
}

func newAttentionBody(a *telematics.Attention) *attentionBody {
	if a == nil {
		return nil
	}
	return &attentionBody{Signal: a.Signal, DurationMS: a.Duration.Milliseconds()}
}

// commands gives orders to vehicles, and answers with what became of them.
type commands struct {
	controller Controller
	fleet      Fleet
	bulks      Bulks
	limits     *limits
	audit      *audit
	budget     time.Duration // of a command
}

// get answers GET /admin/commands/{id}.
func (o commands) get(c *call) error {
	id, err := contract.ParseUUID(c.Param("id"))
	if err != nil {
		return contract.Invalid("id", "must be a UUID")
	}
	command, err := o.fleet.Command(c.ctx(), id)
	if err != nil {
		return err
	}
	if !c.actor.Sees(command.Agency) {
		return telematics.NoSuchCommand(id)
	}
	entry := c.entry(telematics.CommandsRead, command.Vehicle)
	entry.Agency, entry.Command = command.Agency, command.ID
	if err := o.audit.commandsRead(c, []telematics.Command{command}, entry); err != nil {
		return err
	}
	return c.answer("The command is "+string(command.State)+".", newCommandBody(command))
}

// ofVehicle answers GET /admin/vehicles/{vehicle}/commands.
func (o commands) ofVehicle(c *call) error {
	p := c.page("commands")
	twin, err := visibleTwin(c, o.fleet.Record)
	if err != nil {
		return err
	}
	// Commands that another agency gave before the vehicle changed hands are not this agency's to
	// see.
	found, err := o.fleet.VehicleCommands(c.ctx(), twin.ID, c.actor.Agency, p.query())
	if err != nil {
		return err
	}
	listed, meta := cut(p, found, func(c telematics.Command) int64 { return c.Seq })
	entry := c.entry(telematics.CommandsRead, twin.ID)
	entry.Agency = twin.AgencyID
	if err := o.audit.commandsRead(c, listed, entry); err != nil {
		return err
	}
	return c.answerWith(plural(len(listed), "command"), bodies(listed, newCommandBody), meta)
}

// fleetCommands is the list of GET /admin/commands.
const fleetCommands = "commands" + byID

// list answers GET /admin/commands: commands to all vehicles, or, with bulk, an order to many.
func (o commands) list(c *call) error {
	if c.QueryParam("bulk") != "" {
		return o.bulk(c)
	}
	p := c.page(fleetCommands)
	query, filter, visible := newCommandQuery(c)
	query.Limit = p.limit + 1
	query.Before, _ = p.parseIDCursor(c.QueryParam("cursor"))
	var found []telematics.Command
	if visible {
		var err error
		if found, err = o.fleet.List(c.ctx(), query); err != nil {
			return err
		}
	}
	listed, meta := cutAt(p, found, func(c telematics.Command) string { return c.ID.String() })
	entry := c.entry(telematics.CommandsRead, query.Vehicle)
	entry.Agency, entry.Details = query.Agency, map[string]any{"filter": filter}
	if err := o.audit.commandsRead(c, listed, entry); err != nil {
		return err
	}
	return c.answerWith(plural(len(listed), "command"), bodies(listed, newCommandBody), meta)
}

// newCommandQuery returns the query without its page, and the filter as the audit log has it. It
// reports false where the actor may not see the agency of the query.
func newCommandQuery(c *call) (query telematics.CommandQuery, filter map[string]any, visible bool) {
	query = telematics.CommandQuery{
		Vehicle: telematics.VehicleID(c.queryInteger("vehicle_id")), Actor: c.QueryParam("actor"), From: c.queryTime("from"), To: c.queryTime("to"),
	}
	query.Agency, visible = c.queryAgency()
	filter = map[string]any{}
	for _, name := range []string{"state", "outcome", "actor", "from", "to"} {
		if value := c.QueryParam(name); value != "" {
			filter[name] = value
		}
	}
	if query.Vehicle != 0 {
		filter["vehicle_id"] = int64(query.Vehicle)
	}
	if query.Agency != 0 {
		filter["agency_id"] = int64(query.Agency)
	}
	states, outcome := c.QueryParam("state"), telematics.Outcome(c.QueryParam("outcome"))
	if states == "" && outcome == "" {
		return query, filter, visible
	}
	query.States = slices.DeleteFunc(slices.Clone(telematics.States), func(s telematics.State) bool {
		return states != "" && !slices.Contains(strings.Split(states, ","), string(s)) || outcome != "" && s.Outcome() != outcome
	})
	return query, filter, visible
}
