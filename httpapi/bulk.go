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

// bulkWorkers is how many vehicles of one order are turned to at once.
const bulkWorkers = 64

// orderMany answers POST /admin/commands once every vehicle has been turned to.
func (s *server) orderMany(c echo.Context) error {
	// A caller that hangs up does not leave half of its vehicles out.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Request().Context()), telematics.BulkFor)
	defer cancel()
	call := callOf(c)
	preferences := readPreferences(c.Request().Header)
	b := newBulk(call)
	b.Requested = s.Now()
	if s.BulkRate != 0 && !s.repeats(ctx, call) {
		quota, refusal := s.count(ctx, s.bulkLimit(call.actor, len(b.Vehicles)))
		showQuota(c.Response().Header(), tighter(call.quota, quota))
		if refusal != nil {
			line := call.line(telematics.BulkOrder, 0, s.Now())
			line.Code, line.Outcome = refusal.Code, refusal.Outcome
			s.noteRefusal(ctx, line)
			return refusal
		}
	}
	keyTaken, err := s.Bulks.OpenBulk(ctx, b)
	switch {
	case err != nil:
		refusal := telematics.Unavailable("Postgres", err)
		s.noteMany(ctx, call, refusal.Code, refusal.Outcome)
		return refusal
	case keyTaken:
		return s.repeatMany(ctx, c)
	}
	b.Items = s.startMany(ctx, b, preferences)
	s.recordUnknown(ctx, b)
	s.closeMany(ctx, b)
	preferences.apply(c)
	return s.answerMany(c, b)
}

func (s *server) answerMany(c echo.Context, b telematics.Bulk) error {
	body := newBulkBody(b)
	c.Response().Header().Set(echo.HeaderLocation, "/api/v1/admin/commands?bulk="+body.ID)
	return s.write(c, http.StatusAccepted, envelope{
		Success: true, Message: body.Summary.sentence(), Data: body,
	})
}

// errOutOfTime is why a vehicle was not turned to.
var errOutOfTime = errors.New("the order to many vehicles took too long")

// closeMany writes down why there is no command for some of the vehicles. It has a time of
// its own: where the order's is up, there is most to write.
func (s *server) closeMany(ctx context.Context, b telematics.Bulk) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.ReadBudget)
	defer cancel()
	var group errgroup.Group
	group.SetLimit(bulkWorkers)
	for _, item := range b.Items {
		if item.Refusal != nil && errors.Is(item.Refusal, errOutOfTime) {
			group.Go(func() error {
				s.recordLeftOut(ctx, b, item.Vehicle, item.Refusal)
				return nil
			})
		}
	}
	_ = group.Wait()
	if err := s.Bulks.RefuseBulk(ctx, b.ID, b.Items); err != nil { // they are in the history, and in this answer
		s.Log.WarnContext(ctx, "refusals of a bulk not written down", "bulk", b.ID, "err", err)
	}
}

// checkBulk checks what the contract cannot say of an order to many vehicles.
func checkBulk(call *call, wrong *contract.FieldErrors) error {
	b := newBulk(call)
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
func newBulk(call *call) telematics.Bulk {
	action, _ := call.values["action"].(string)
	parameters, _ := call.values["parameters"].(map[string]any)
	ids, _ := call.values["vehicle_ids"].([]any)
	b := telematics.Bulk{
		ID: uuid.Must(uuid.NewV7()), Action: telematics.Action(action), Actor: call.actor, RequestID: call.id, Key: call.key,
		Attention: attention(telematics.Action(action), parameters),
	}
	for _, id := range ids {
		b.Vehicles = append(b.Vehicles, telematics.VehicleID(wholeNumber(id)))
	}
	return b
}

// startMany turns to each vehicle, some at a time, until the context ends.
func (s *server) startMany(ctx context.Context, b telematics.Bulk, p preferences) []telematics.BulkItem {
	items := make([]telematics.BulkItem, len(b.Vehicles))
	var group errgroup.Group
	group.SetLimit(bulkWorkers)
	for i, vehicle := range b.Vehicles {
		group.Go(func() error {
			items[i] = s.startOne(ctx, b, vehicle, p)
			return nil
		})
	}
	_ = group.Wait()
	return items
}

func (s *server) startOne(ctx context.Context, b telematics.Bulk, vehicle telematics.VehicleID, p preferences) telematics.BulkItem {
	item := telematics.BulkItem{Vehicle: vehicle}
	if ctx.Err() != nil {
		item.Refusal = telematics.Unavailable("A server of ours", errOutOfTime)
		return item
	}
	if s.VehicleRate != 0 && s.mayOrder(ctx, b.Actor, vehicle) {
		if _, refusal := s.count(ctx, s.vehicleLimit(vehicle)); refusal != nil {
			s.recordLeftOut(ctx, b, vehicle, refusal)
			item.Refusal = refusal
			return item
		}
	}
	receipt, err := s.Controller.Start(ctx, &delivery.Order{
		Vehicle: vehicle, Action: b.Action, Attention: b.Attention, Budget: cmp.Or(p.wait, s.Budget),
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
func (s *server) recordLeftOut(ctx context.Context, b telematics.Bulk, vehicle telematics.VehicleID, refusal *telematics.Error) {
	line := telematics.Activity{
		At: s.Now(), Actor: b.Actor, Agency: b.Actor.Agency, Vehicle: vehicle, Action: telematics.CommandActivity(b.Action),
		Attention: b.Attention, RequestID: b.RequestID, Latency: s.Now().Sub(b.Requested),
		Outcome: telematics.NotExecuted, Code: refusal.Code,
	}
	s.Refusals.Note(ctx, line)
}

// firstUnknown is how many of the vehicles that do not exist are named.
const firstUnknown = 20

// recordUnknown writes down, in one entry, which vehicles of the order do not exist, or are not the actor's to see: one request must
// not write an entry for each number that a caller invents [LAW-9].
func (s *server) recordUnknown(ctx context.Context, b telematics.Bulk) {
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
	s.Refusals.Note(ctx, telematics.Activity{
		At: s.Now(), Actor: b.Actor, Agency: b.Actor.Agency, Action: telematics.CommandActivity(b.Action),
		Details:   map[string]any{"unknown_vehicles": unknown, "vehicle_ids": first},
		RequestID: b.RequestID, Latency: s.Now().Sub(b.Requested), Outcome: telematics.NotExecuted, Code: telematics.VehicleNotFound,
	})
}

// repeatMany answers an order to many vehicles whose key is in use.
func (s *server) repeatMany(ctx context.Context, c echo.Context) error {
	b, refusal := s.madeMany(ctx, *callOf(c).key)
	if refusal != nil {
		s.noteMany(ctx, callOf(c), asError(refusal).Code, telematics.NotExecuted)
		return refusal
	}
	s.noteMany(ctx, callOf(c), telematics.IdempotencyReplayed, telematics.Undecided)
	markReplayed(c, true)
	return s.answerMany(c, b)
}

// noteMany writes down what became of an order to many vehicles as a whole, where its commands do not tell [LAW-9].
func (s *server) noteMany(ctx context.Context, call *call, code telematics.Code, outcome telematics.Outcome) {
	line := call.line(telematics.BulkOrder, 0, s.Now())
	line.Code, line.Outcome = code, outcome
	s.Refusals.Note(ctx, line)
}

// madeMany returns what was made under a key, as it is now.
func (s *server) madeMany(ctx context.Context, key telematics.IdempotencyKey) (telematics.Bulk, error) {
	made, found, err := s.Bulks.Made(ctx, key)
	switch {
	case err != nil:
		return telematics.Bulk{}, telematics.Unavailable("Postgres", err)
	case !found: // freed a moment ago
		return telematics.Bulk{}, telematics.StillOpen(telematics.Command{})
	case made.Fingerprint != key.Fingerprint:
		return telematics.Bulk{}, telematics.KeyMismatch()
	}
	return s.Bulks.Bulk(ctx, made.Bulk)
}

// bulk answers GET /admin/commands?bulk={id}.
func (s *server) bulk(c echo.Context) error {
	id, err := contract.ParseUUID(c.QueryParam("bulk"))
	if err != nil {
		return contract.Invalid("bulk", "must be a UUID")
	}
	b, err := s.Bulks.Bulk(c.Request().Context(), id)
	if err != nil {
		return err
	}
	if !callOf(c).actor.Sees(b.Actor.Agency) {
		return telematics.NoSuchBulk(id)
	}
	var commands []telematics.Command
	for _, item := range b.Items {
		if item.Command != nil {
			commands = append(commands, *item.Command)
		}
	}
	entry := callOf(c).line(telematics.CommandsRead, 0, s.Now())
	entry.Details = map[string]any{"bulk": b.ID.String()}
	if err := s.recordCommandsRead(c, commands, entry); err != nil {
		return err
	}
	body := newBulkBody(b)
	return s.answer(c, body.Summary.sentence(), body)
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
