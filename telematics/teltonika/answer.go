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

// The parts of an answer to setdigout. Each output has one, as in "DOUT1:ON Timeout:10s
// DOUT2:IGNORED DOUT3:Already set to 1"; older firmware sends 1 for ON, other firmware "DOUT3 state
// already set to: 1 time_on_ms: 0 time_off_ms: 0", or "DOUTS are set to:0010" for all outputs.
var (
	namedOutput    = regexp.MustCompile(`(?i)\bDOUT\s?([1-4])\b`)
	allOutputs     = regexp.MustCompile(`(?i)\bDOUTS are set to\s?:\s?([01]{1,4})\b`)
	ignoredOutput  = regexp.MustCompile(`(?i)^\s?:\s?ignored\b`)
	switchedOutput = regexp.MustCompile(`(?i)^\s?:\s?(ON|OFF|0|1)\b`)
	alreadySo      = regexp.MustCompile(`(?i)^[\s:]*(?:state )?already set to\s?:?\s?(ON|OFF|0|1)\b`)
	queuedOutput   = regexp.MustCompile(`(?i)\bqueued\b`)
	disabledOutput = regexp.MustCompile(`(?i)\bdisabled from cfg\b`)
	unknownCommand = regexp.MustCompile(`(?i)\b(not recogni[sz]ed|unknown command|unsupported)\b`)
	failedCommand  = regexp.MustCompile(`(?i)\b(error|fail(ed)?|wrong|invalid|bad syntax|arguments required)\b`)
)

// saying is what an answer says of one output.
type saying struct {
	output  int
	means   telematics.State // Received: nothing certain
	on      bool             // the level that it names
	named   bool             // it names a level
	already bool             // it had that level before
	ignored bool             // the command did not name it
}

// sayings returns what an answer says of the outputs that it names.
func sayings(text string) (all []saying) {
	if found := allOutputs.FindStringSubmatch(text); found != nil {
		for i, level := range found[1] {
			all = append(all, saying{output: i + 1, means: telematics.Succeeded, on: level == '1', named: true})
		}
		return all
	}
	found := namedOutput.FindAllStringSubmatchIndex(text, -1)
	for i, at := range found {
		end := len(text)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		all = append(all, readSaying(atoi(text[at[2]:at[3]]), text[at[1]:end]))
	}
	return all
}

func readSaying(output int, text string) saying {
	s := saying{output: output, means: telematics.Received}
	level := alreadySo.FindStringSubmatch(text)
	if s.already = level != nil; !s.already {
		level = switchedOutput.FindStringSubmatch(text)
	}
	if s.named = level != nil; s.named {
		s.on = level[1] == "1" || strings.EqualFold(level[1], "on")
	}
	switch {
	case disabledOutput.MatchString(text):
		s.means = telematics.Rejected
	case queuedOutput.MatchString(text): // it will be executed, at an unknown time
	case failedCommand.MatchString(text):
		s.means = telematics.Failed
	case s.named:
		s.means = telematics.Succeeded
	default:
		s.ignored = ignoredOutput.MatchString(text)
	}
	return s
}

// meaning returns the state that an answer to setdigout stands for. A text that means neither
// success nor failure is Received: the command may have been executed.
func meaning(text string) telematics.State {
	has := map[telematics.State]bool{}
	for _, s := range sayings(text) {
		if !s.ignored {
			has[s.means] = true
		}
	}
	switch {
	case len(has) == 0 && (disabledOutput.MatchString(text) || unknownCommand.MatchString(text)):
		return telematics.Rejected
	case len(has) == 0 && failedCommand.MatchString(text), has[telematics.Failed]:
		return telematics.Failed
	case has[telematics.Rejected] && len(has) > 1: // of another output
		return telematics.Failed
	case has[telematics.Received], len(has) == 0:
		return telematics.Received
	case has[telematics.Rejected]:
		return telematics.Rejected
	}
	return telematics.Succeeded
}

// DecodeAnswer implements telematics.Dialect. The text alone decides the state.
func (Dialect) DecodeAnswer(m telematics.Message, received time.Time) (telematics.Answer, []telematics.Dropped, error) {
	in, err := parse(m)
	if err != nil {
		return telematics.Answer{}, nil, err
	}
	if in.Response == nil {
		return telematics.Answer{}, nil, telematics.ErrOtherKind
	}
	a := telematics.Answer{Command: telematics.NoCommand, At: received, State: meaning(*in.Response), Detail: shorten(*in.Response)}
	if a.State == telematics.Rejected {
		a.Reason = telematics.Unsupported
	}
	return a, nil, nil
}

// Recognise implements telematics.Recogniser: an answer that names outputs and their levels does
// not belong to a command that switches one of them differently, or one that it does not name. An
// output that had the level of a pulse before has had no pulse: such an answer is Received.
func (Dialect) Recognise(i telematics.Installation, c *telematics.Command, a telematics.Answer) (telematics.State, bool) {
	w, err := parseInstallation(i)
	if err != nil {
		return a.State, true
	}
	said, levels := map[int]saying{}, false
	for _, s := range sayings(a.Detail) {
		said[s.output], levels = s, levels || s.named
	}
	state := a.State
	for _, wanted := range w.ordered(c) {
		s, ok := said[wanted.output]
		switch {
		case levels && (!ok || s.ignored), s.named && s.on != wanted.on:
			return a.State, false
		case s.already && wanted.seconds > 0 && state == telematics.Succeeded:
			state = telematics.Received
		}
	}
	return state, true
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
