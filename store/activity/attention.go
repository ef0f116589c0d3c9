package activity

import (
	"encoding/json"
	"fmt"
	"time"

	"motorpool/telematics"
)

// Attention is the JSON of the parameters of an attention command, in the audit log as in the table
// of commands.
type Attention struct {
	Signal     string `json:"signal"`
	DurationMS int64  `json:"duration_ms"`
}

// EncodeAttention returns nil for nil.
func EncodeAttention(a *telematics.Attention) *Attention {
	if a == nil {
		return nil
	}
	return &Attention{Signal: string(a.Signal), DurationMS: a.Duration.Milliseconds()}
}

// DecodeAttention returns nil for nil.
func DecodeAttention(parameters *string) (*telematics.Attention, error) {
	if parameters == nil {
		return nil, nil
	}
	var row Attention
	if err := json.Unmarshal([]byte(*parameters), &row); err != nil {
		return nil, fmt.Errorf("decode parameters: %w", err)
	}
	return &telematics.Attention{
		Signal: telematics.Signal(row.Signal), Duration: time.Duration(row.DurationMS) * time.Millisecond,
	}, nil
}
