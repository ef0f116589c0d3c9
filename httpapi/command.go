package httpapi

import (
	"encoding/json"

	"github.com/labstack/echo/v4"

	"motorpool/telematics"
)

// commandBody is a command, the same wherever it appears.
type commandBody struct {
	ID          string              `json:"id"`
	VehicleID   int64               `json:"vehicle_id"`
	Action      telematics.Action   `json:"action"`
	Parameters  *attentionBody      `json:"parameters"`
	State       telematics.State    `json:"state"`
	Outcome     *telematics.Outcome `json:"outcome"` // null while open
	RequestedBy string              `json:"requested_by"`
	RequestedAt string              `json:"requested_at"`
	SentAt      *string             `json:"sent_at"`
	ReceivedAt  *string             `json:"received_at"`
	CompletedAt *string             `json:"completed_at"`
	Deadline    string              `json:"deadline"`
	Attempts    int                 `json:"attempts"`
	LatencyMS   *int64              `json:"latency_ms"`
	Late        bool                `json:"late"`
	Reason      *string             `json:"reason"`
	Detail      *string             `json:"detail"`
	Reported    json.RawMessage     `json:"reported"`
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
		Deadline: timestamp(c.Deadline), Attempts: c.Attempts, Late: c.Late,
		Reason: orNull(c.Reason), Detail: orNull(c.Detail),
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

// command answers GET /admin/commands/{id}.
func (s *server) command(c echo.Context) error {
	id, err := commandParam(c)
	if err != nil {
		return err
	}
	command, err := s.Fleet.Command(c.Request().Context(), id)
	if err != nil {
		return err
	}
	if !callOf(c).actor.Sees(command.Agency) {
		return telematics.NoSuchCommand(id)
	}
	entry := callOf(c).line(telematics.CommandsRead, command.Vehicle, s.Now())
	entry.Agency, entry.Command = command.Agency, command.ID
	if err := s.recordCommandsRead(c, []telematics.Command{command}, entry); err != nil {
		return err
	}
	return s.answer(c, "The command is "+string(command.State)+".", newCommandBody(command))
}

// vehicleCommands answers GET /admin/vehicles/{vehicle}/commands.
func (s *server) vehicleCommands(c echo.Context) error {
	p, err := pageOf(c, "commands")
	if err != nil {
		return err
	}
	twin, err := s.twin(c)
	if err != nil {
		return err
	}
	// A vehicle may have come from another agency: what that one ordered stays its own.
	found, err := s.Fleet.VehicleCommands(c.Request().Context(), twin.ID, callOf(c).actor.Agency, p.query())
	if err != nil {
		return err
	}
	commands, meta := cut(p, found, func(c telematics.Command) int64 { return c.Seq })
	entry := callOf(c).line(telematics.CommandsRead, twin.ID, s.Now())
	entry.Agency = twin.AgencyID
	if err := s.recordCommandsRead(c, commands, entry); err != nil {
		return err
	}
	return s.answerWith(c, counted(len(commands), "command"), bodies(commands, newCommandBody), meta)
}
