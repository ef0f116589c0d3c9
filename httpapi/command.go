package httpapi

import (
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
