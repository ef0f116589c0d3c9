package httpapi

import (
	"fmt"

	"github.com/labstack/echo/v4"

	"motorpool/httpapi/contract"
	"motorpool/telematics"
)

// haltBody is a halt in force.
type haltBody struct {
	AgencyID *int64 `json:"agency_id"` // null: of all agencies
	Reason   string `json:"reason"`
	By       string `json:"by"`
	Since    string `json:"since"`
}

func newHaltBody(h telematics.Halt) haltBody {
	return haltBody{AgencyID: orNull(int64(h.Agency)), Reason: h.Why, By: h.By, Since: timestamp(h.Since)}
}

// halts answers GET /admin/halts: those that stop vehicles which the caller sees.
func (s *server) halts(c echo.Context) error {
	inForce, err := s.Halts.Halts(c.Request().Context())
	if err != nil {
		return err
	}
	actor := callOf(c).actor
	seen := make([]telematics.Halt, 0, len(inForce))
	for _, h := range inForce {
		if h.Agency == 0 || actor.Sees(h.Agency) {
			seen = append(seen, h)
		}
	}
	return s.answer(c, counted(len(seen), "halt"), bodies(seen, newHaltBody))
}

// halt answers PUT /admin/halts once the halt holds at every instance.
func (s *server) halt(c echo.Context) error {
	call := callOf(c)
	h := telematics.Halt{Agency: telematics.AgencyID(call.wholeNumber("agency_id")), Why: call.text("reason")}
	if !call.actor.Sees(h.Agency) {
		return haltsOwnAgency(call.actor.Agency)
	}
	made, known, err := s.Halts.Halt(c.Request().Context(), h, call.author())
	switch {
	case err != nil:
		return err
	case !known:
		return contract.Invalid("agency_id", fmt.Sprintf("must be an agency; there is no agency %d", h.Agency))
	}
	return s.answer(c, fmt.Sprintf("Commands to vehicles of %s are halted.", agencyOrAll(h.Agency)), newHaltBody(made))
}

// resume answers DELETE /admin/halts.
func (s *server) resume(c echo.Context) error {
	call := callOf(c)
	agency, err := integerQuery(c, "agency_id")
	if err != nil {
		return err
	}
	lifted := telematics.AgencyID(agency)
	if !call.actor.Sees(lifted) {
		return haltsOwnAgency(call.actor.Agency)
	}
	done, err := s.Halts.Resume(c.Request().Context(), lifted, call.author())
	switch {
	case err != nil:
		return err
	case !done:
		return &telematics.Error{Code: haltNotFound, Message: fmt.Sprintf("There is no halt of %s.", agencyOrAll(lifted))}
	}
	return s.answer(c, fmt.Sprintf("The halt of %s is lifted.", agencyOrAll(lifted)), nil)
}

// checkHalt checks what the contract cannot say of a halt.
func checkHalt(call *call, wrong *contract.FieldErrors) error {
	checkText(call, "reason", wrong)
	return nil
}

func haltsOwnAgency(agency telematics.AgencyID) *telematics.Error {
	return &telematics.Error{Code: forbidden,
		Message: fmt.Sprintf("Your access token is of agency %d alone: it may halt, and lift the halt of, that agency; give agency_id %d.", agency, agency)}
}

func agencyOrAll(agency telematics.AgencyID) string {
	if agency == 0 {
		return "all agencies"
	}
	return fmt.Sprintf("agency %d", agency)
}
