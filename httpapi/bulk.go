package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
	"golang.org/x/sync/errgroup"

	"motorpool/httpapi/contract"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// bulkWorkers is how many vehicles of one order are handled concurrently.
const bulkWorkers = 64

// orderMany answers POST /admin/commands once every vehicle has been turned to.
func (o commands) orderMany(c *call) error {
	// A caller that hangs up does not leave half of its vehicles out.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx()), telematics.BulkFor)
	defer cancel()
	preferences := readPreferences(c.Request().Header)
	b := newBulk(c)
	b.Requested = c.now()
	if o.limits.Bulk != 0 && !o.limits.repeats(ctx, c) {
		quota, refusal := o.limits.count(ctx, o.limits.bulkLimit(c.actor, len(b.Vehicles)))
		c.showQuota(tighter(c.quota, quota))
		if refusal != nil {
			line := c.entry(telematics.BulkOrder, 0)
			line.Code, line.Outcome = asError(refusal).Code, asError(refusal).Outcome
			o.audit.limit(ctx, line)
			return refusal
		}
	}
	keyTaken, err := o.bulks.OpenBulk(ctx, b)
	switch {
	case err != nil:
		refusal := telematics.Unavailable("Postgres", err)
		o.noteMany(ctx, c, refusal.Code, refusal.Outcome)
		return refusal
	case keyTaken:
		return o.repeatMany(ctx, c)
	}
	b.Items = o.startMany(ctx, b, preferences)
	o.recordUnknown(ctx, b)
	o.closeMany(ctx, b)
	preferences.apply(c)
	return o.answerMany(c, b)
}

func (o commands) answerMany(c *call, b telematics.Bulk) error {
	body := newBulkBody(b)
	c.setHeader(echo.HeaderLocation, "/api/v1/admin/commands?bulk="+body.ID)
	return c.write(http.StatusAccepted, envelope{
		Success: true, Message: body.Summary.sentence(), Data: body,
	})
}

// errOutOfTime is why a vehicle was not turned to.
var errOutOfTime = errors.New("the order to many vehicles took too long")

// closeMany records why there is no command for some of the vehicles. It has a separate timeout:
// where the order's has passed, there is most to record.
func (o commands) closeMany(ctx context.Context, b telematics.Bulk) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.readBudget)
	defer cancel()
	var group errgroup.Group
	group.SetLimit(bulkWorkers)
	for _, item := range b.Items {
		if item.Refusal != nil && errors.Is(item.Refusal, errOutOfTime) {
			group.Go(func() error {
				o.recordLeftOut(ctx, b, item.Vehicle, item.Refusal)
				return nil
			})
		}
	}
	_ = group.Wait()
	if err := o.bulks.RefuseBulk(ctx, b.ID, b.Items); err != nil { // they are in the history, and in this answer
		o.log.WarnContext(ctx, "refusals of a bulk not written down", "bulk", b.ID, "err", err)
	}
}

// checkBulk checks what the contract cannot say of an order to many vehicles.
func checkBulk(c *call, wrong *contract.FieldErrors) error {
	b := newBulk(c)
	if b.Attention != nil && b.Attention.Signal == "" {
		wrong.AddIfValid("parameters.signal", fmt.Sprintf("is required with %s: must be one of horn, lights, both", b.Action))
	}
	met := make(map[telematics.VehicleID]bool, len(b.Vehicles))
	for _, v := range b.Vehicles {
		if met[v] {
			wrong.AddIfValid("vehicle_ids", fmt.Sprintf("must differ; %d comes twice", v))
			break
		}
		met[v] = true
	}
	return nil
}

// newBulk returns the order in the body, which the contract has checked.
func newBulk(c *call) telematics.Bulk {
	action, _ := c.values["action"].(string)
	parameters, _ := c.values["parameters"].(map[string]any)
	ids, _ := c.values["vehicle_ids"].([]any)
	b := telematics.Bulk{
		ID: uuid.Must(uuid.NewV7()), Action: telematics.Action(action), Actor: c.actor, RequestID: c.id, Key: c.key,
		Attention: attention(telematics.Action(action), parameters),
	}
	for _, id := range ids {
		b.Vehicles = append(b.Vehicles, telematics.VehicleID(wholeNumber(id)))
	}
	return b
}

// startMany turns to each vehicle, some at a time, until the context ends.
func (o commands) startMany(ctx context.Context, b telematics.Bulk, p preferences) []telematics.BulkItem {
	items := make([]telematics.BulkItem, len(b.Vehicles))
	var group errgroup.Group
	group.SetLimit(bulkWorkers)
	for i, vehicle := range b.Vehicles {
		group.Go(func() error {
			items[i] = o.startOne(ctx, b, vehicle, p)
			return nil
		})
	}
	_ = group.Wait()
	return items
}

func (o commands) startOne(ctx context.Context, b telematics.Bulk, vehicle telematics.VehicleID, p preferences) telematics.BulkItem {
	item := telematics.BulkItem{Vehicle: vehicle}
	if ctx.Err() != nil {
		item.Refusal = telematics.Unavailable("A server of ours", errOutOfTime)
		return item
	}
	if o.limits.Vehicle != 0 && o.limits.maySee(ctx, b.Actor, vehicle) {
		if _, refusal := o.limits.count(ctx, o.limits.vehicleLimit(vehicle)); refusal != nil {
			o.recordLeftOut(ctx, b, vehicle, asError(refusal))
			item.Refusal = asError(refusal)
			return item
		}
	}
	receipt, err := o.controller.Start(ctx, &delivery.Order{
		Vehicle: vehicle, Action: b.Action, Attention: b.Attention, Budget: cmp.Or(p.wait, o.budget),
		Actor: b.Actor, RequestID: b.RequestID, Bulk: b.ID,
	})
	if err != nil {
		item.Refusal = asError(err)
		return item
	}
	item.Command = receipt.Command
	return item
}

// recordLeftOut writes down that a vehicle was left out: the controller never hears of it [LAW-9].
func (o commands) recordLeftOut(ctx context.Context, b telematics.Bulk, vehicle telematics.VehicleID, refusal *telematics.Error) {
	line := telematics.Activity{
		At: o.now(), Actor: b.Actor, Agency: b.Actor.Agency, Vehicle: vehicle, Action: telematics.CommandActivity(b.Action),
		Attention: b.Attention, RequestID: b.RequestID, Latency: o.now().Sub(b.Requested),
		Outcome: telematics.NotExecuted, Code: refusal.Code,
	}
	o.audit.refusals.Note(ctx, line)
}

// firstUnknown is how many of the vehicles that do not exist are named.
const firstUnknown = 20

// recordUnknown writes down, in one entry, which vehicles of the order do not exist, or are not the
// actor's to see: one request must not write an entry for each number that a caller invents
// [LAW-9].
func (o commands) recordUnknown(ctx context.Context, b telematics.Bulk) {
	var unknown int
	var first []telematics.VehicleID
	for _, item := range b.Items {
		if item.Refusal == nil || item.Refusal.Code != telematics.VehicleNotFound {
			continue
		}
		if unknown++; unknown <= firstUnknown {
			first = append(first, item.Vehicle)
		}
	}
	if unknown == 0 {
		return
	}
	o.audit.refusals.Note(ctx, telematics.Activity{
		At: o.now(), Actor: b.Actor, Agency: b.Actor.Agency, Action: telematics.CommandActivity(b.Action),
		Details:   map[string]any{"unknown_vehicles": unknown, "vehicle_ids": first},
		RequestID: b.RequestID, Latency: o.now().Sub(b.Requested), Outcome: telematics.NotExecuted, Code: telematics.VehicleNotFound,
	})
}

// repeatMany answers an order to many vehicles whose key is in use.
func (o commands) repeatMany(ctx context.Context, c *call) error {
	b, refusal := o.madeMany(ctx, *c.key)
	if refusal != nil {
		o.noteMany(ctx, c, asError(refusal).Code, telematics.NotExecuted)
		return refusal
	}
	o.noteMany(ctx, c, telematics.IdempotencyReplayed, telematics.Undecided)
	c.markReplayed(true)
	return o.answerMany(c, b)
}

// noteMany writes down what became of an order to many vehicles as a whole, where its commands do
// not tell [LAW-9].
func (o commands) noteMany(ctx context.Context, c *call, code telematics.Code, outcome telematics.Outcome) {
	line := c.entry(telematics.BulkOrder, 0)
	line.Code, line.Outcome = code, outcome
	o.audit.refusals.Note(ctx, line)
}

// madeMany returns what was made under a key, as it is now.
func (o commands) madeMany(ctx context.Context, key telematics.IdempotencyKey) (telematics.Bulk, error) {
	made, found, err := o.bulks.Made(ctx, key)
	switch {
	case err != nil:
		return telematics.Bulk{}, telematics.Unavailable("Postgres", err)
	case !found: // freed a moment ago
		return telematics.Bulk{}, telematics.StillOpen(telematics.Command{})
	case made.Fingerprint != key.Fingerprint:
		return telematics.Bulk{}, telematics.KeyMismatch()
	}
	return o.bulks.Bulk(ctx, made.Bulk)
}

// bulk answers GET /admin/commands?bulk={id}.
func (o commands) bulk(c *call) error {
	id, err := contract.ParseUUID(c.QueryParam("bulk"))
	if err != nil {
		return contract.Invalid("bulk", "must be a UUID")
	}
	b, err := o.bulks.Bulk(c.ctx(), id)
	if err != nil {
		return err
	}
	if !c.actor.Sees(b.Actor.Agency) {
		return telematics.NoSuchBulk(id)
	}
	var commands []telematics.Command
	for _, item := range b.Items {
		if item.Command != nil {
			commands = append(commands, *item.Command)
		}
	}
	entry := c.entry(telematics.CommandsRead, 0)
	entry.Details = map[string]any{"bulk": b.ID.String()}
	if err := o.audit.commandsRead(c, commands, entry); err != nil {
		return err
	}
	body := newBulkBody(b)
	return c.answer(body.Summary.sentence(), body)
}

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
