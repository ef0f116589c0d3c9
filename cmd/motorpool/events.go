package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"motorpool/guard"
	"motorpool/telematics"
)

// events prints the event stream, and reconnects when it breaks.
type events struct {
	remote
	Vehicle string `placeholder:"N|PLATE" env:"-" help:"Only of this vehicle (default all)."`
	Event   string `placeholder:"KINDS" env:"-" help:"Of command, status, presence, alarm, alert, halt, booking, rental (default all)."`
	After   string `placeholder:"ID" env:"-" help:"Resume after this event id (default: from now on)."`
}

// reconnectAfter is how long to wait before a reconnection, unless the stream sets another time.
const reconnectAfter = 3 * time.Second

func (e events) Run(ctx context.Context) error {
	vehicle := int64(0)
	if e.Vehicle != "" {
		var err error
		if vehicle, err = e.vehicleID(ctx, e.Vehicle); err != nil {
			return err
		}
	}
	at := position{last: e.After, wait: reconnectAfter}
	for {
		err := e.follow(ctx, vehicle, &at)
		var final refusal
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &final):
			return final.error
		}
		fmt.Fprintf(stderr, "motorpool: the stream was cut (%v); again in %s\n", err, telematics.Words(at.wait))
		if !guard.Pause(ctx, at.wait) {
			return nil
		}
	}
}

// position is where a stream resumes.
type position struct {
	last string
	wait time.Duration
}

// refusal is an error that a retry does not change.
type refusal struct{ error }

func (e events) follow(ctx context.Context, vehicle int64, at *position) error {
	query := url.Values{}
	if vehicle != 0 {
		query.Set("vehicle_id", fmt.Sprint(vehicle))
	}
	if e.Event != "" {
		query.Set("event", e.Event)
	}
	var headers []string
	if at.last != "" {
		headers = []string{"Last-Event-ID", at.last}
	}
	request, err := e.request(ctx, http.MethodGet, "events?"+query.Encode(), nil, headers...)
	if err != nil {
		return refusal{err}
	}
	response, err := service.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return at.notFollowed(response)
	}
	return at.read(response.Body, func(l eventLine) error {
		if err := e.printLine(stdout, l); err != nil {
			return refusal{err}
		}
		return nil
	})
}

// notFollowed returns the error of a response that is no stream: a refusal if the status is below
// 500, but for one that was cut, and that an instance still counts as open.
func (at *position) notFollowed(response *http.Response) error {
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	_, err = readAnswer(answer, response)
	counted := response.StatusCode == http.StatusTooManyRequests && at.last != ""
	if response.StatusCode < http.StatusInternalServerError && !counted {
		return refusal{err}
	}
	return err
}

// eventLine is an event as JSON, on one line.
type eventLine struct {
	ID    string          `json:"id"`
	Event string          `json:"event"`
	Data  json.RawMessage `json:"data"`
}

// printLine prints an event on one line: as JSON, or for people its kind and its data.
func (e events) printLine(to io.Writer, l eventLine) error {
	if e.wantsTable() {
		_, err := fmt.Fprintln(to, l.Event, string(telematics.EscapeJSON(l.Data)))
		return err
	}
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(l); err != nil {
		return fmt.Errorf("event %s: %w", l.ID, err)
	}
	_, err := to.Write(telematics.EscapeJSON(line.Bytes()))
	return err
}

// read calls use for each event, until the stream ends or use fails.
func (at *position) read(stream io.Reader, use func(eventLine) error) error {
	lines := bufio.NewScanner(stream)
	lines.Buffer(nil, 1<<20)
	kind, data, id := "", "", ""
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "id":
			id = value
		case "event":
			kind = value
		case "data":
			data = value
		case "retry":
			if ms, err := time.ParseDuration(value + "ms"); err == nil {
				at.wait = ms
			}
		case "":
			if lines.Text() != "" { // a comment
				continue
			}
			if id != "" {
				at.last = id // only once the event is whole
			}
			if kind == "end" {
				return fmt.Errorf("it ended: %s", reason(data))
			}
			if kind != "" {
				if err := use(eventLine{ID: id, Event: kind, Data: json.RawMessage(data)}); err != nil {
					return err
				}
			}
			kind, data, id = "", "", ""
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return io.ErrUnexpectedEOF
}

func reason(data string) string {
	var notice struct{ Reason string }
	_ = json.Unmarshal([]byte(data), &notice) // without a reason if it cannot be decoded
	return notice.Reason
}
