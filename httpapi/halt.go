package httpapi

import (
	"context"
	"fmt"
	"strings"
	"time"

	"motorpool/httpapi/contract"
	"motorpool/httpapi/errorcode"
	"motorpool/httpapi/request"
	"motorpool/httpapi/resource"
	"motorpool/telematics"
)

// haltHandlers answers with halts, and changes them.
type haltHandlers struct{ *server }

// bodies returns halts with their effects, which are missing if they cannot be counted in time.
func (k haltHandlers) bodies(c *request.Call, halts ...telematics.Halt) []resource.Halt {
	ctx, cancel := context.WithTimeout(c.Ctx(), effectBudget)
	defer cancel()
	effects, err := k.Halts.Effects(ctx, halts)
	if err != nil {
		k.Log.WarnContext(ctx, "halt effects not read", "err", err)
		return resource.NewHalts(halts, nil)
	}
	return resource.NewHalts(halts, effects)
}

func (k haltHandlers) list(c *request.Call) error {
	inForce, err := k.Halts.Halts(c.Ctx())
	if err != nil {
		return err
	}
	visible := make([]telematics.Halt, 0, len(inForce))
	for _, h := range inForce {
		if h.Agency == 0 || c.Actor.Sees(h.Agency) {
			visible = append(visible, h)
		}
	}
	return c.Answer(request.Plural(len(visible), "halt"), k.bodies(c, visible...))
}

func (k haltHandlers) halt(c *request.Call) error {
	h := telematics.Halt{Agency: telematics.AgencyID(c.WholeNumber("agency_id")), Why: c.Text("reason")}
	ctx, cancel := c.Detached(k.ReadBudget)
	defer cancel()
	made, exists, err := k.Halts.Halt(ctx, h, c.Author())
	switch {
	case err != nil:
		return err
	case !exists:
		return contract.Invalid("agency_id", fmt.Sprintf("must be an agency; there is no agency %d", h.Agency))
	}
	time.Sleep(k.HaltWithin)
	body := k.bodies(c, made)[0]
	message := fmt.Sprintf("Commands to vehicles of %s are halted.", agencyOrAll(h.Agency))
	if body.Effect != nil && body.Effect.InFlight > 0 {
		message += " " + strings.TrimSuffix(request.Plural(body.Effect.InFlight, "command"), ".") + " sent before may still be executed."
	}
	return c.Answer(message, body)
}

// resume answers DELETE /admin/halts. The reason is a parameter: many proxies drop the body of a
// DELETE.
func (k haltHandlers) resume(c *request.Call) error {
	agency := telematics.AgencyID(c.QueryInteger("agency_id"))
	ctx, cancel := c.Detached(k.ReadBudget)
	defer cancel()
	lifted, err := k.Halts.Resume(ctx, agency, c.QueryParam("reason"), c.Author())
	switch {
	case err != nil:
		return err
	case !lifted:
		return &telematics.Error{Code: errorcode.HaltNotFound, Message: fmt.Sprintf("There is no halt of %s.", agencyOrAll(agency))}
	}
	return c.Answer(fmt.Sprintf("The halt of %s is lifted.", agencyOrAll(agency)), nil)
}

// checkHalt checks what the contract cannot express.
func checkHalt(c *request.Call, wrong *contract.FieldErrors) error {
	checkText(c, "reason", wrong)
	return checkHaltAgency(c, c.WholeNumber("agency_id"))
}

func checkResume(c *request.Call, _ *contract.FieldErrors) error {
	return checkHaltAgency(c, c.QueryInteger("agency_id"))
}

func checkHaltAgency(c *request.Call, agency int64) error {
	if c.Actor.Sees(telematics.AgencyID(agency)) {
		return nil
	}
	return request.Forbidden(
		"Your access token is for agency %d: it can halt and resume only that agency; send agency_id %[1]d.", c.Actor.Agency,
	)
}

func agencyOrAll(agency telematics.AgencyID) string {
	if agency == 0 {
		return "all agencies"
	}
	return fmt.Sprintf("agency %d", agency)
}
