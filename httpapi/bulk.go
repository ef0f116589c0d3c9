package httpapi

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"motorpool/httpapi/contract"
	"motorpool/httpapi/request"
	"motorpool/httpapi/resource"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

func (o commands) orderMany(c *request.Call) error {
	b := newBulk(c)
	if err := o.limits.PassBulk(c, len(b.Vehicles)); err != nil {
		entry := c.Entry(telematics.BulkOrder, 0)
		entry.Code, entry.Outcome = request.AsError(err).Code, request.AsError(err).Outcome
		o.audit.RecordLimited(c.Ctx(), entry)
		return err
	}
	preferences := readPreferences(c.Request().Header)
	bulk, replayed, err := o.Controller.SendMany(c.Ctx(), &delivery.BulkOrder{
		Bulk: b, Budget: cmp.Or(preferences.wait, o.Budget),
		Admit: func(ctx context.Context, vehicle telematics.VehicleID) *telematics.Error {
			if err := o.limits.AdmitVehicle(ctx, b.Actor, vehicle); err != nil {
				return request.AsError(err)
			}
			return nil
		},
	})
	if err != nil {
		return err
	}
	if c.MarkReplayed(replayed); !replayed {
		preferences.apply(c)
	}
	return o.answerMany(c, bulk)
}

func (o commands) answerMany(c *request.Call, b telematics.Bulk) error {
	body := newBulkBody(b)
	c.SetHeader(echo.HeaderLocation, "/api/v1/admin/commands?bulk="+body.ID)
	return c.AnswerWith(http.StatusAccepted, body.Summary.sentence(), body, nil)
}

// checkBulk checks what the contract cannot express.
func checkBulk(c *request.Call, wrong *contract.FieldErrors) error {
	b := newBulk(c)
	if _, sent := c.Values["parameters"]; sent && b.Attention == nil && slices.Contains(telematics.ControlActions, b.Action) {
		wrong.AddIfValid("parameters", fmt.Sprintf("must be left out: only %s has parameters", telematics.AttentionSignal))
	}
	if b.Attention != nil && b.Attention.Signal == "" {
		wrong.AddIfValid("parameters.signal", fmt.Sprintf("is required with %s: must be one of horn, lights, both", b.Action))
	}
	met := make(map[telematics.VehicleID]bool, len(b.Vehicles))
	for _, v := range b.Vehicles {
		if met[v] {
			wrong.AddIfValid("vehicle_ids", fmt.Sprintf("must be unique; %d is repeated", v))
			break
		}
		met[v] = true
	}
	return nil
}

// newBulk returns the order in the body, which the contract has checked.
func newBulk(c *request.Call) telematics.Bulk {
	action, _ := c.Values["action"].(string)
	parameters, _ := c.Values["parameters"].(map[string]any)
	ids, _ := c.Values["vehicle_ids"].([]any)
	b := telematics.Bulk{
		ID: uuid.Must(uuid.NewV7()), Action: telematics.Action(action), Actor: c.Actor, RequestID: c.ID, Key: c.Key,
		Attention: attention(telematics.Action(action), parameters),
	}
	for _, id := range ids {
		b.Vehicles = append(b.Vehicles, telematics.VehicleID(request.WholeNumber(id)))
	}
	return b
}

func (o commands) bulk(c *request.Call) error {
	for _, name := range []string{"state", "outcome", "vehicle_id", "agency_id", "actor", "from", "to", "limit", "cursor"} {
		if c.QueryParams().Has(name) {
			return contract.Invalid(name, "cannot be combined with bulk, which names one order")
		}
	}
	id, err := contract.ParseUUID(c.QueryParam("bulk"))
	if err != nil {
		return contract.Invalid("bulk", "must be a UUID")
	}
	b, err := o.Bulks.Bulk(c.Ctx(), id)
	if err != nil {
		return err
	}
	if !c.Actor.Sees(b.Actor.Agency) {
		return telematics.NoSuchBulk(id)
	}
	var commands []telematics.Command
	for _, item := range b.Items {
		if item.Command != nil {
			commands = append(commands, *item.Command)
		}
	}
	entry := c.Entry(telematics.CommandsRead, 0)
	entry.Details = map[string]any{"bulk": b.ID.String()}
	if err := o.audit.commandsRead(c, commands, entry); err != nil {
		return err
	}
	body := newBulkBody(b)
	return c.Answer(body.Summary.sentence(), body)
}

// bulkList is the list of GET /admin/bulk-commands.
const bulkList = "bulk_commands" + request.ByID

func (o commands) bulkCommands(c *request.Call) error {
	p := c.Page(bulkList)
	query := telematics.BulkQuery{Agency: c.Actor.Agency}
	query.Limit, query.Before = p.QueryByID()
	found, err := o.Bulks.Bulks(c.Ctx(), query)
	if err != nil {
		return err
	}
	listed, meta := request.CutAt(p, found, func(b telematics.CountedBulk) string { return b.ID.String() })
	return c.AnswerWith(http.StatusOK, request.Plural(len(listed), "bulk command"),
		resource.List(listed, func(b telematics.CountedBulk) bulkOrderBody {
			body := newBulkOrderBody(b.Bulk)
			for outcome, n := range b.Outcomes {
				body.Summary.add(outcome, n)
			}
			return body
		}), meta)
}

// bulkBody is an order to many vehicles, and its results.
type bulkBody struct {
	bulkOrderBody
	Items []bulkItemBody `json:"items"`
}

type bulkOrderBody struct {
	ID          string              `json:"id"`
	Action      telematics.Action   `json:"action"`
	Parameters  *resource.Attention `json:"parameters"`
	RequestedBy string              `json:"requested_by"`
	RequestedAt string              `json:"requested_at"`
	Summary     bulkSummary         `json:"summary"`
}

func newBulkOrderBody(b telematics.Bulk) bulkOrderBody {
	return bulkOrderBody{
		ID: b.ID.String(), Action: b.Action, Parameters: resource.NewAttention(b.Attention),
		RequestedBy: b.Actor.Subject, RequestedAt: resource.Timestamp(b.Requested),
	}
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
	VehicleID int64              `json:"vehicle_id"`
	Command   *resource.Command  `json:"command"` // null: none was made
	Error     *request.ErrorBody `json:"error"`   // null: none, or the command is open
	Message   *string            `json:"message"` // of the error
}

func newBulkBody(b telematics.Bulk) bulkBody {
	body := bulkBody{newBulkOrderBody(b), resource.List(b.Items, newBulkItemBody)}
	for _, item := range b.Items {
		body.Summary.count(item)
	}
	return body
}

func newBulkItemBody(item telematics.BulkItem) bulkItemBody {
	body := bulkItemBody{VehicleID: int64(item.Vehicle)}
	failure := item.Refusal
	if item.Command != nil {
		body.Command = resource.NewCommand(item.Command)
		if !item.Command.State.IsOpen() {
			failure = item.Command.Err()
		}
	}
	if failure != nil {
		body.Error, body.Message = request.NewErrorBody(failure), &failure.Message
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
	s.add(outcome, 1)
}

func (s *bulkSummary) add(outcome telematics.Outcome, n int) {
	s.Total += n
	switch outcome {
	case telematics.Undecided:
		s.Open += n
	case telematics.Executed:
		s.Executed += n
	case telematics.NotExecuted:
		s.NotExecuted += n
	case telematics.HasFailed:
		s.Failed += n
	case telematics.MayHave:
		s.Unknown += n
	}
}

// sentence returns a summary such as "2 vehicles: 1 executed, 1 open."
func (s bulkSummary) sentence() string {
	var parts []string
	for _, part := range []struct {
		n    int
		what string
	}{
		{s.Executed, "executed"}, {s.NotExecuted, "not executed"}, {s.Failed, "failed"},
		{s.Unknown, "unknown"}, {s.Open, "open"},
	} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	return fmt.Sprintf("%s: %s.", strings.TrimSuffix(request.Plural(s.Total, "vehicle"), "."), strings.Join(parts, ", "))
}
