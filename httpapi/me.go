package httpapi

import (
	"motorpool/httpapi/auth"
)

// meBody is who makes the request.
type meBody struct {
	Subject   string      `json:"subject"`
	Level     string      `json:"level"`
	AgencyID  *int64      `json:"agency_id"` // null: all agencies
	Scopes    auth.Scopes `json:"scopes"`
	ExpiresAt string      `json:"expires_at"`
}

// me answers GET /admin/me.
func me(c *call) error {
	return c.answer("You are "+c.actor.Subject+".", meBody{
		Subject: c.actor.Subject, Level: c.level.String(), AgencyID: orNull(int64(c.actor.Agency)),
		Scopes: append(auth.Scopes{}, c.scopes...), ExpiresAt: timestamp(c.tokenUntil),
	})
}
