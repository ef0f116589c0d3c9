package resource

import "motorpool/telematics"

// Command is a command, the same wherever it appears.
type Command struct {
	ID           string              `json:"id"`
	VehicleID    int64               `json:"vehicle_id"`
	BookingID    *int64              `json:"booking_id"` // null: an administrator ordered it
	Action       telematics.Action   `json:"action"`
	Parameters   *Attention          `json:"parameters"`
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
	Assurance    Promises            `json:"assurance"`
}

type Attention struct {
	Signal     telematics.Signal `json:"signal"`
	DurationMS int64             `json:"duration_ms"`
}

// NewCommand returns a command.
func NewCommand(c *telematics.Command) *Command {
	body := &Command{
		ID: c.ID.String(), VehicleID: int64(c.Vehicle), BookingID: OrNull(c.Booking),
		Action: c.Action, Parameters: NewAttention(c.Attention), State: c.State, Outcome: OrNull(c.State.Outcome()),
		RequestedBy: c.Actor.Subject, RequestedAt: Timestamp(c.Requested),
		SentAt: TimestampOrNull(c.SentAt), ReceivedAt: TimestampOrNull(c.ReceivedAt), CompletedAt: TimestampOrNull(c.Completed),
		Deadline: Timestamp(c.Deadline), ExpiresAt: Timestamp(c.Expires()), Attempts: c.Attempts,
		PublishedAt: List(c.Publications(), Timestamp), Late: c.Late, Contradicted: c.BestEffort.Contradicted,
		Reason: OrNull(c.Reason), Detail: OrNull(c.Detail), Assurance: Promises(c.Assurance),
	}
	if !c.Completed.IsZero() {
		body.LatencyMS = new(c.Latency().Milliseconds())
	}
	if c.Reported != nil {
		body.Reported = c.Reported.Nested()
	}
	return body
}

// NewCommands returns the body of each command.
func NewCommands(commands []telematics.Command) []*Command {
	list := make([]*Command, len(commands))
	for i := range commands {
		list[i] = NewCommand(&commands[i])
	}
	return list
}

// NewAttention returns the parameters of an attention signal, nil where there are none.
func NewAttention(a *telematics.Attention) *Attention {
	if a == nil {
		return nil
	}
	return &Attention{Signal: a.Signal, DurationMS: a.Duration.Milliseconds()}
}
