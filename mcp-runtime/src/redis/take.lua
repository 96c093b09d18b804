-- Takes from what is left of a rate, if that suffices.
-- KEYS: the table's keys by the microsecond in which everything has come back, how many of them each owner has
-- ARGV: owner, key, microseconds in which everything comes back, those for what is taken,
--       the table's keys, the owner's keys
-- Returns 0 if it was taken, the microseconds to wait, or -1 if the owner has as many keys as it may.
local restored, owners = KEYS[1], KEYS[2]
local owner, window, cost = ARGV[1], tonumber(ARGV[3]), tonumber(ARGV[4])
local member = #owner .. ':' .. owner .. ARGV[2]
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local before = redis.call('ZSCORE', restored, member)
local used = math.max(tonumber(before or 0) - now, 0)
if used > window then
  -- the clock has gone back, or is that of another server after a failover
  used = window
  redis.call('ZADD', restored, string.format('%.0f', now + window), member)
end
local left = used + cost
if left > window then return left - window end

local function forget(members)
  for _, gone in ipairs(members) do
    local length = string.match(gone, '^%d+')
    local whose = string.sub(gone, #length + 2, #length + 1 + length)
    redis.call('ZREM', restored, gone)
    if redis.call('HINCRBY', owners, whose, -1) <= 0 then redis.call('HDEL', owners, whose) end
  end
  return #members
end

if not before then
  local full
  repeat
    local expired = forget(redis.call('ZRANGEBYSCORE', restored, '-inf', now, 'LIMIT', 0, 200))
    full = tonumber(redis.call('HGET', owners, owner) or 0) >= tonumber(ARGV[6])
  until not full or expired < 200
  if full then return -1 end
  local excess = redis.call('ZCARD', restored) - tonumber(ARGV[5])
  if excess >= 0 then forget(redis.call('ZRANGE', restored, 0, math.min(excess, 200))) end
  redis.call('HINCRBY', owners, owner, 1)
end
redis.call('ZADD', restored, string.format('%.0f', now + left), member)
local ttl = math.ceil(left / 1000)
for _, of in ipairs({ restored, owners }) do
  if redis.call('PTTL', of) < ttl then redis.call('PEXPIRE', of, ttl) end
end
return 0
