package httpapi

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"motorpool/httpapi/contract"
	"motorpool/rental"
	"motorpool/telematics"
)

// agencyKeyBody is a key that an agency's apps sign requests with, without its secret.
type agencyKeyBody struct {
	ID         string          `json:"id"`
	AgencyID   int64           `json:"agency_id"`
	AgencyCode string          `json:"agency_code"`
	State      rental.KeyState `json:"state"`
	RetiresAt  *string         `json:"retires_at"`
	CreatedAt  string          `json:"created_at"`
}

// agencyKeyBodyWithSecret is the one body that shows a secret.
type agencyKeyBodyWithSecret struct {
	agencyKeyBody
	Secret string `json:"secret"` // hexadecimal digits
}

func newAgencyKeyBody(k rental.AgencyKey) agencyKeyBody {
	return agencyKeyBody{
		ID: k.ID, AgencyID: int64(k.Agency), AgencyCode: k.AgencyCode, State: k.State,
		RetiresAt: timestampOrNull(k.Retires), CreatedAt: timestamp(k.Created),
	}
}

// agencyOfKeys returns the agency that the path names. Another one than the caller's does not exist for it.
func agencyOfKeys(c echo.Context) (telematics.AgencyID, error) {
	id, err := contract.ParseInteger(c.Param("agency"))
	if err != nil {
		return 0, contract.Invalid("agency", "must be an integer")
	}
	if agency := telematics.AgencyID(id); agency > 0 && callOf(c).actor.Sees(agency) {
		return agency, nil
	}
	return 0, noSuchAgency(c)
}

func noSuchAgency(c echo.Context) error {
	return &telematics.Error{Code: agencyNotFound, Message: fmt.Sprintf("There is no agency %s.", c.Param("agency"))}
}

func noSuchKey(c echo.Context, more string) error {
	return &telematics.Error{Code: agencyKeyNotFound, Message: fmt.Sprintf("There is no key %s of agency %s%s.", c.Param("key"), c.Param("agency"), more)}
}

// listAgencyKeys answers GET /admin/agencies/{agency}/keys.
func (s *server) listAgencyKeys(c echo.Context) error {
	agency, err := agencyOfKeys(c)
	if err != nil {
		return err
	}
	all, err := s.AgencyKeyRegistry.List(c.Request().Context())
	if err != nil {
		return err
	}
	keys := make([]rental.AgencyKey, 0, len(all))
	for _, k := range all {
		if k.Agency == agency {
			keys = append(keys, k)
		}
	}
	return s.answer(c, counted(len(keys), "key"), bodies(keys, newAgencyKeyBody))
}

// limitNewKeys refuses a key to an agency that got many within a day.
func (s *server) limitNewKeys(c echo.Context, agency telematics.AgencyID) error {
	all, err := s.AgencyKeyRegistry.List(c.Request().Context())
	if err != nil {
		return err
	}
	lately := 0
	for _, k := range all {
		if k.Agency == agency && s.Now().Sub(k.Created) < 24*time.Hour {
			lately++
		}
	}
	usedUp := telematics.Quota{Limit: newKeysADay, Reset: time.Hour, Over: lately >= newKeysADay}
	if !usedUp.Over {
		return nil
	}
	showQuota(c.Response().Header(), usedUp)
	return overLimit(usedUp, "The limit of %d new keys a day for agency %d is used up.", agency)
}

// addAgencyKey answers POST /admin/agencies/{agency}/keys.
func (s *server) addAgencyKey(c echo.Context) error {
	agency, err := agencyOfKeys(c)
	if err != nil {
		return err
	}
	if err := s.limitNewKeys(c, agency); err != nil {
		return err
	}
	key, known, err := s.AgencyKeyRegistry.Add(c.Request().Context(), agency, callOf(c).author())
	switch {
	case err != nil:
		return err
	case !known:
		return noSuchAgency(c)
	}
	return s.write(c, http.StatusCreated, envelope{
		Success: true, Message: fmt.Sprintf("The key %s was made. Its secret is shown this once.", key.ID),
		Data: agencyKeyBodyWithSecret{agencyKeyBody: newAgencyKeyBody(key), Secret: hex.EncodeToString(key.Secret)},
	})
}

// retireAgencyKey answers POST /admin/agencies/{agency}/keys/{key}/retire.
func (s *server) retireAgencyKey(c echo.Context) error {
	agency, err := agencyOfKeys(c)
	if err != nil {
		return err
	}
	until, err := contract.ParseTime(callOf(c).text("until"))
	if err != nil {
		return contract.Invalid("until", "must be a time")
	}
	if !until.After(s.Now()) {
		return contract.Invalid("until", "must be in the future; revoke ends a key now")
	}
	key, known, err := s.AgencyKeyRegistry.Retire(c.Request().Context(), agency, c.Param("key"), until, callOf(c).author())
	switch {
	case err != nil:
		return err
	case !known:
		return noSuchKey(c, ", or it is revoked")
	}
	return s.answer(c, fmt.Sprintf("The key %s is good until %s.", key.ID, timestamp(key.Retires)), newAgencyKeyBody(key))
}

// revokeAgencyKey answers POST /admin/agencies/{agency}/keys/{key}/revoke.
func (s *server) revokeAgencyKey(c echo.Context) error {
	agency, err := agencyOfKeys(c)
	if err != nil {
		return err
	}
	key, known, err := s.AgencyKeyRegistry.Revoke(c.Request().Context(), agency, c.Param("key"), callOf(c).author())
	switch {
	case err != nil:
		return err
	case !known:
		return noSuchKey(c, "")
	}
	return s.answer(c, fmt.Sprintf("The key %s is revoked.", key.ID), newAgencyKeyBody(key))
}
