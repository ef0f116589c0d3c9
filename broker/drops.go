package broker

import "motorpool/telematics"

// faults name the counts of what is dropped of sound reports, by what is wrong with it.
var faults = map[telematics.Fault]string{
	telematics.WrongType:   fieldsWrongType,
	telematics.OutOfRange:  fieldsOutOfRange,
	telematics.UnknownWord: fieldsUnknownWord,
	telematics.WrongTime:   timesReplaced,
}

// addDropped counts the parts of a report that were not taken, all and by their fault.
func (c *Counts) addDropped(dropped []telematics.Dropped) {
	c.addN(fieldsDropped, len(dropped))
	for _, d := range dropped {
		if name, ok := faults[d.Fault]; ok {
			c.add(name)
		}
	}
}

// addIgnored counts the presence that did not count.
func (c *Counts) addIgnored(seen telematics.Seen) {
	c.addN(presenceGhosts, seen.Ghosts)
	c.addN(presenceOvertaken, seen.Overtaken)
}
