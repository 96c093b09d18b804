-- Reads the entries of a log that come after a position.
-- KEYS: log, the table's entries; ARGV: log, position, number of entries
-- Returns the positions of the first and last entry, that of the first one read, and what was read.
local length = redis.call('LLEN', KEYS[1])
local text = redis.call('HGET', KEYS[2], ARGV[1])
if length == 0 or not text then return false end
local last = tonumber(string.match(text, '^(%d+) '))
local first = last - length + 1
local from = math.max(tonumber(ARGV[2]) + 1, first)
local entries = {}
local limit = tonumber(ARGV[3])
if from <= last and limit > 0 then
  entries = redis.call('LRANGE', KEYS[1], from - first, math.min(from - first + limit - 1, length - 1))
end
return { first, last, from, entries }
