package commands

import "motorpool/telematics"

// Bits of the column assurance that stand for no promise.
const (
	byReport       = 1 << 5 // Command.ByReport
	reportedBefore = 1 << 6 // Command.ReportedBefore
	contradicted   = 1 << 7 // Command.Contradicted
)

func encodeAssurance(c *telematics.Command) int64 {
	bits := c.Assurance.Bits()
	if c.ByReport {
		bits |= byReport
	}
	if c.ReportedBefore {
		bits |= reportedBefore
	}
	if c.Contradicted {
		bits |= contradicted
	}
	return int64(bits)
}

func decodeAssurance(column *int16, c *telematics.Command) {
	c.Assurance = telematics.PromisesOf(column)
	if column != nil {
		c.ByReport, c.ReportedBefore, c.Contradicted = *column&byReport != 0, *column&reportedBefore != 0, *column&contradicted != 0
	}
}
