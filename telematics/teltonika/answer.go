package teltonika

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"motorpool/telematics"
)

// incoming is what a unit publishes: a record, or an answer.
type incoming struct {
	State *struct {
		Reported map[string]json.RawMessage `json:"reported"`
	} `json:"state"`
	Response *string `json:"RSP"`
}

func parse(m telematics.Message) (incoming, error) {
	if len(m.Payload) > telematics.MaxMessage {
		return incoming{}, fmt.Errorf("message of %d bytes: want at most %d", len(m.Payload), telematics.MaxMessage)
	}
	var in incoming
	if err := json.Unmarshal(m.Payload, &in); err != nil {
		return incoming{}, fmt.Errorf("not Codec JSON: %w", err)
	}
	if (in.State == nil) == (in.Response == nil) {
		return incoming{}, errors.New(`neither a record ("state") nor an answer ("RSP")`)
	}
	return in, nil
}

// Answers to setdigout, as in "DOUT1:ON Timeout:10s DOUT2:IGNORED". Older firmware sends 1 for ON.
var (
	switchedOutput = regexp.MustCompile(`(?i)\bDOUT\s?([1-4])\s?:\s?(ON|OFF|0|1)\b`)
	queuedOutput   = regexp.MustCompile(`(?i)\bqueued\b`)
	disabledOutput = regexp.MustCompile(`(?i)\bdisabled from cfg\b`)
	unknownCommand = regexp.MustCompile(`(?i)\b(not recogni[sz]ed|unknown command|unsupported)\b`)
	failedCommand  = regexp.MustCompile(`(?i)\b(error|fail(ed)?|wrong|invalid)\b`)
)

// DecodeAnswer implements telematics.Dialect. The text alone decides the state. A text that means
// neither success nor failure is Received: the command may have been executed.
func (Dialect) DecodeAnswer(m telematics.Message, received time.Time) (telematics.Answer, []telematics.Dropped, error) {
	in, err := parse(m)
	if err != nil {
		return telematics.Answer{}, nil, err
	}
	if in.Response == nil {
		return telematics.Answer{}, nil, telematics.ErrOtherKind
	}
	said := *in.Response
	a := telematics.Answer{Command: telematics.NoCommand, At: received, State: telematics.Received, Detail: shorten(said)}
	switch {
	case disabledOutput.MatchString(said), unknownCommand.MatchString(said):
		a.State, a.Reason = telematics.Rejected, telematics.Unsupported
	case queuedOutput.MatchString(said): // it will be executed, at an unknown time
	case failedCommand.MatchString(said):
		a.State = telematics.Failed
	case switchedOutput.MatchString(said):
		a.State = telematics.Succeeded
	}
	return a, nil, nil
}

// Recognises implements telematics.Recogniser: an answer that names outputs and their states does
// not belong to a command that switches one of them differently, or one that it does not name.
func (Dialect) Recognises(i telematics.Installation, c *telematics.Command, a telematics.Answer) bool {
	said := switchedOutput.FindAllStringSubmatch(a.Detail, -1)
	w, err := parseInstallation(i)
	if err != nil || len(said) == 0 {
		return true
	}
	on := map[int]bool{}
	for _, output := range said {
		on[atoi(output[1])] = output[2] == "1" || strings.EqualFold(output[2], "on")
	}
	for _, s := range w.ordered(c) {
		if is, ok := on[s.output]; !ok || is != s.on {
			return false
		}
	}
	return true
}

// shorten returns a text that can be stored: valid UTF-8, no NUL, single spaces, at most MaxText
// bytes.
func shorten(s string) string {
	s = strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "")
	s = strings.Join(strings.Fields(s), " ")
	for len(s) > telematics.MaxText {
		_, size := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-size]
	}
	return s
}
