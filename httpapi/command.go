package httpapi

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"motorpool/httpapi/contract"
	"motorpool/httpapi/request"
	"motorpool/httpapi/resource"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// commands sends commands to vehicles, and answers with their results.
type commands struct{ *server }

func (o commands) get(c *request.Call) error {
	id, err := contract.ParseUUID(c.Param("id"))
	if err != nil {
		return contract.Invalid("id", "must be a UUID")
	}
	command, err := o.Commands.Command(c.Ctx(), id)
	if err != nil {
		return err
	}
	if !c.Actor.Sees(command.Agency) {
		return telematics.NoSuchCommand(id)
	}
	entry := c.Entry(telematics.CommandsRead, command.Vehicle)
	entry.Agency, entry.Command = command.Agency, command.ID
	if err := o.audit.commandsRead(c, []telematics.Command{command}, entry); err != nil {
		return err
	}
	return c.Answer(stateSentences[command.State], resource.NewCommand(&command))
}

func (o commands) ofVehicle(c *request.Call) error {
	p := c.Page("commands")
	twin, err := visibleTwin(c, o.Fleet.Record)
	if err != nil {
		return err
	}
	// An agency must not see commands that another one sent before the vehicle was moved to this
	// agency.
	found, err := o.Commands.VehicleCommands(c.Ctx(), twin.ID, c.Actor.Agency, p.Query())
	if err != nil {
		return err
	}
	listed, meta := request.Cut(p, found, func(c telematics.Command) int64 { return c.Seq })
	entry := c.Entry(telematics.CommandsRead, twin.ID)
	entry.Agency = twin.AgencyID
	if err := o.audit.commandsRead(c, listed, entry); err != nil {
		return err
	}
	return c.AnswerWith(http.StatusOK, request.Plural(len(listed), "command"), resource.NewCommands(listed), meta)
}

// fleetCommands is the list of GET /admin/commands.
const fleetCommands = "commands" + request.ByID

func (o commands) list(c *request.Call) error {
	if c.QueryParam("bulk") != "" {
		return o.bulk(c)
	}
	p := c.Page(fleetCommands)
	query := newCommandQuery(c)
	query.Limit, query.Before = p.QueryByID()
	found, err := o.Commands.List(c.Ctx(), query)
	if err != nil {
		return err
	}
	listed, meta := request.CutAt(p, found, func(c telematics.Command) string { return c.ID.String() })
	entry := c.Entry(telematics.CommandsRead, query.Vehicle)
	filter := filterOf(c, "state", "outcome", "actor", "from", "to")
	if query.Vehicle != 0 {
		filter["vehicle_id"] = int64(query.Vehicle)
	}
	entry.Agency, entry.Details = query.Agency, map[string]any{"filter": filter}
	if err := o.audit.commandsRead(c, listed, entry); err != nil {
		return err
	}
	return c.AnswerWith(http.StatusOK, request.Plural(len(listed), "command"), resource.NewCommands(listed), meta)
}

// newCommandQuery returns the query without its page.
func newCommandQuery(c *request.Call) telematics.CommandQuery {
	query := telematics.CommandQuery{
		Agency: c.QueryAgency(), Vehicle: telematics.VehicleID(c.QueryInteger("vehicle_id")),
		Actor: c.QueryParam("actor"), From: c.QueryTime("from"), To: c.QueryTime("to"),
	}
	states, outcome := c.QueryParam("state"), telematics.Outcome(c.QueryParam("outcome"))
	if states == "" && outcome == "" {
		return query
	}
	query.States = slices.DeleteFunc(slices.Clone(telematics.States), func(s telematics.State) bool {
		return states != "" && !slices.Contains(strings.Split(states, ","), string(s)) || outcome != "" && s.Outcome() != outcome
	})
	return query
}

// order returns the handler of a control action. It answers when the command is settled, or, with
// Prefer: respond-async, when it is accepted. A caller that disconnects does not cancel it.
func (o commands) order(a telematics.Action) request.Handler {
	return func(c *request.Call) error {
		preferences := readPreferences(c.Request().Header)
		send := o.Controller.Send
		if preferences.async {
			send = o.Controller.Start
		}
		receipt, err := send(c.Ctx(), &delivery.Order{
			Vehicle: c.VehicleID(), Action: a, Attention: attention(a, c.Values), Budget: cmp.Or(preferences.wait, o.Budget),
			Actor: c.Actor, RequestID: c.ID, Idempotency: c.Key, Lookup: c.Lookup,
		})
		preferences.ordered(c, receipt, err)
		if err != nil {
			return err
		}
		return answerCommand(c, receipt.Command)
	}
}

// answerCommand answers with a settled command, or, for a call that did not wait, an open one.
func answerCommand(c *request.Call, command *telematics.Command) error {
	if command.State.IsOpen() {
		c.SetHeader(echo.HeaderLocation, "/api/v1/admin/commands/"+command.ID.String())
		message := fmt.Sprintf("The command for vehicle %d is accepted; read its result at Location.", command.Vehicle)
		return c.AnswerWith(http.StatusAccepted, message, resource.NewCommand(command), nil)
	}
	if err := command.Err(); err != nil {
		return err
	}
	return c.Answer(done(command), resource.NewCommand(command))
}

// attention returns the parameters among values that the contract has checked; nil: the action has
// none.
func attention(a telematics.Action, values map[string]any) *telematics.Attention {
	if a != telematics.AttentionSignal {
		return nil
	}
	signal, _ := values["signal"].(string)
	attention := &telematics.Attention{Signal: telematics.Signal(signal), Duration: telematics.DefaultPulse}
	if number, ok := values["duration_ms"].(json.Number); ok {
		milliseconds, _ := number.Float64() // 1000.0 is an integer, too
		attention.Duration = time.Duration(milliseconds) * time.Millisecond
	}
	return attention
}

// stateSentences say what became of a command.
var stateSentences = map[telematics.State]string{
	telematics.Accepted:  "The command was accepted, and is not sent yet.",
	telematics.Sent:      "The command was sent; the vehicle has not answered yet.",
	telematics.Received:  "The vehicle has received the command.",
	telematics.Succeeded: "The command succeeded.",
	telematics.Rejected:  "The vehicle rejected the command.",
	telematics.Failed:    "The command failed.",
	telematics.Expired:   "The command expired before it was sent.",
	telematics.Unknown:   "The result of the command is unknown.",
}

// doneFormats are the sentences of done.
var doneFormats = map[telematics.Action]string{
	telematics.Lock:                   "Vehicle %d was locked.",
	telematics.Unlock:                 "Vehicle %d was unlocked.",
	telematics.EnableDriving:          "Vehicle %d may be driven.",
	telematics.DisableDriving:         "Vehicle %d was immobilized.",
	telematics.UnlockAndEnableDriving: "Vehicle %d was unlocked and may be driven.",
	telematics.LockAndDisableDriving:  "Vehicle %d was immobilized and locked.",
	telematics.AttentionSignal:        "Attention signal sent (vehicle %d).",
	telematics.OpenTopCase:            "The top case of vehicle %d was opened.",
}

// done returns the sentence of the answer to an executed command.
func done(c *telematics.Command) string {
	if format, ok := doneFormats[c.Action]; ok {
		return fmt.Sprintf(format, c.Vehicle)
	}
	return fmt.Sprintf("Vehicle %d executed %s.", c.Vehicle, c.Action)
}

const (
	headerPrefer            = "Prefer"
	headerPreferenceApplied = "Preference-Applied"
)

// preferences are the values of the header Prefer (RFC 7240). A wait that is too long is shortened;
// unknown preferences are ignored.
type preferences struct {
	async bool          // respond-async: do not wait for the vehicle
	wait  time.Duration // how long the vehicle may take; zero: the default
}

func readPreferences(h http.Header) preferences {
	var p preferences
	for _, preference := range splitUnquoted(strings.Join(h.Values(headerPrefer), ",")) {
		preference, _, _ = strings.Cut(preference, ";") // none of ours has parameters
		name, value, _ := strings.Cut(preference, "=")
		value = strings.Trim(strings.TrimSpace(value), `"`)
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "respond-async":
			p.async = true
		case "wait":
			if p.wait == 0 { // the first one counts
				p.wait = waitOf(value)
			}
		}
	}
	return p
}

// waitOf returns how long a caller wants to wait, at most as long as a command may take; zero: the
// value cannot be applied.
func waitOf(value string) time.Duration {
	seconds, err := strconv.ParseUint(value, 10, 16) // no sign, and no product that wraps around
	if errors.Is(err, strconv.ErrRange) {
		return telematics.MaxBudget
	}
	wait := time.Duration(seconds) * time.Second
	if err != nil || wait < telematics.MinBudget {
		return 0
	}
	return min(wait, telematics.MaxBudget)
}

// splitUnquoted splits at commas outside quoted strings.
func splitUnquoted(list string) []string {
	quoted, escaped := false, false
	return strings.FieldsFunc(list, func(c rune) bool {
		switch {
		case escaped:
			escaped = false
		case quoted && c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
		}
		return c == ',' && !quoted
	})
}

// ordered notes the result of an order. A repetition has waited for nothing.
func (p preferences) ordered(c *request.Call, receipt delivery.Receipt, err error) {
	c.Ordered(receipt, err)
	if c.MarkReplayed(receipt.Replayed); !receipt.Replayed {
		p.apply(c)
	}
}

// apply sets the header Preference-Applied.
func (p preferences) apply(c *request.Call) {
	var applied []string
	if p.async {
		applied = append(applied, "respond-async")
	}
	if p.wait != 0 {
		applied = append(applied, "wait="+strconv.Itoa(int(p.wait.Seconds())))
	}
	if applied != nil {
		c.SetHeader(headerPreferenceApplied, strings.Join(applied, ", "))
	}
}
