package httpapi

import (
	"fmt"
	"strings"

	"motorpool/telematics"
)

// bulkBody is an order to many vehicles, and what has become of it.
type bulkBody struct {
	ID          string            `json:"id"`
	Action      telematics.Action `json:"action"`
	Parameters  *attentionBody    `json:"parameters"`
	RequestedBy string            `json:"requested_by"`
	RequestedAt string            `json:"requested_at"`
	Summary     bulkSummary       `json:"summary"`
	Items       []bulkItemBody    `json:"items"`
}

// bulkSummary counts vehicles.
type bulkSummary struct {
	Total       int `json:"total"`
	Open        int `json:"open"` // not settled yet
	Executed    int `json:"executed"`
	NotExecuted int `json:"not_executed"` // refused, too
	Failed      int `json:"failed"`
	Unknown     int `json:"unknown"`
}

type bulkItemBody struct {
	VehicleID int64        `json:"vehicle_id"`
	Command   *commandBody `json:"command"` // null: none was made
	Error     *errorBody   `json:"error"`   // null: the vehicle did it, or is still asked
	Message   *string      `json:"message"` // of the error
}

func newBulkBody(b telematics.Bulk) bulkBody {
	body := bulkBody{
		ID: b.ID.String(), Action: b.Action, Parameters: newAttentionBody(b.Attention),
		RequestedBy: b.Actor.Subject, RequestedAt: timestamp(b.Requested),
		Items: bodies(b.Items, newBulkItemBody),
	}
	for _, item := range b.Items {
		body.Summary.count(item)
	}
	return body
}

func newBulkItemBody(item telematics.BulkItem) bulkItemBody {
	body := bulkItemBody{VehicleID: int64(item.Vehicle)}
	failure := item.Refusal
	if item.Command != nil {
		command := newCommandBody(*item.Command)
		body.Command = &command
		if !item.Command.State.IsOpen() {
			failure = item.Command.Err()
		}
	}
	if failure != nil {
		body.Error, body.Message = newErrorBody(failure), &failure.Message
	}
	return body
}

func (s *bulkSummary) count(item telematics.BulkItem) {
	outcome := telematics.Undecided
	switch {
	case item.Refusal != nil:
		outcome = telematics.NotExecuted
	case item.Command != nil:
		outcome = item.Command.State.Outcome()
	}
	s.Total++
	switch outcome {
	case telematics.Undecided:
		s.Open++
	case telematics.Executed:
		s.Executed++
	case telematics.NotExecuted:
		s.NotExecuted++
	case telematics.HasFailed:
		s.Failed++
	case telematics.MayHave:
		s.Unknown++
	}
}

// sentence says what there is to say: "2 vehicles: 1 did it, 1 still asked."
func (s bulkSummary) sentence() string {
	var parts []string
	for _, part := range []struct {
		n    int
		what string
	}{
		{s.Executed, "did it"}, {s.NotExecuted, "did not"}, {s.Failed, "failed"},
		{s.Unknown, "may have done it"}, {s.Open, "still asked"},
	} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	return fmt.Sprintf("%s: %s.", strings.TrimSuffix(counted(s.Total, "vehicle"), "."), strings.Join(parts, ", "))
}
