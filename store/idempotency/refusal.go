package idempotency

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"motorpool/telematics"
)

// Refusal is the JSON of a refusal that is returned again when the request is repeated.
type Refusal struct {
	Code       telematics.Code    `json:"code"`
	Message    string             `json:"message"`
	Retryable  bool               `json:"retryable"`
	RetryAfter int64              `json:"retry_after_ms"`
	Outcome    telematics.Outcome `json:"outcome"`
	Command    uuid.UUID          `json:"command_id"`
	Reason     string             `json:"reason"`
	Detail     string             `json:"detail"`
}

// EncodeRefusal is the reverse of DecodeRefusal.
func EncodeRefusal(e *telematics.Error) Refusal {
	return Refusal{
		Code: e.Code, Message: e.Message, Retryable: e.Retryable, RetryAfter: e.RetryAfter.Milliseconds(),
		Outcome: e.Outcome, Command: e.Command, Reason: e.Reason, Detail: e.Detail,
	}
}

// DecodeRefusal reads the JSON of a Refusal.
func DecodeRefusal(text string) (*telematics.Error, error) {
	var r Refusal
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return nil, err
	}
	return &telematics.Error{
		Code: r.Code, Message: r.Message, Retryable: r.Retryable, RetryAfter: time.Duration(r.RetryAfter) * time.Millisecond,
		Outcome: r.Outcome, Command: r.Command, Reason: r.Reason, Detail: r.Detail,
	}, nil
}
