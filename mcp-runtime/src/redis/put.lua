-- Puts a value, if its condition and the limits of its table allow that.
-- KEYS: value, table's expiries, table's entries, table's usage
-- ARGV: key, owner, bytes, expiry in ms, condition (-1 always, 0 absent, else the version),
--       the table's values and bytes, the owner's values and bytes
local value, expiries, entries, usage = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local key, owner, bytes, ttl, condition = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function count(field, by)
  if by ~= 0 and redis.call('HINCRBY', usage, field, by) <= 0 then redis.call('HDEL', usage, field) end
end

local function charge(whose, values, size)
  count('values', values)
  count('bytes', size)
  count('values ' .. whose, values)
  count('bytes ' .. whose, size)
end

local function used(field) return tonumber(redis.call('HGET', usage, field) or 0) end

-- what a value costs, and who pays
local function entry(of)
  local text = redis.call('HGET', entries, of)
  if not text then return nil end
  local size, whose = string.match(text, '^(%d+) (.*)$')
  return tonumber(size), whose
end

-- forgets some of what has expired; whether there may be more
local function expire()
  local gone = redis.call('ZRANGEBYSCORE', expiries, '-inf', now, 'LIMIT', 0, 200)
  for _, of in ipairs(gone) do
    local size, whose = entry(of)
    if size then charge(whose, -1, -size) end
    redis.call('HDEL', entries, of)
    redis.call('ZREM', expiries, of)
  end
  return #gone == 200
end

local more = expire()
local version = redis.call('HGET', value, 'n')
if condition == 0 and version then return 1 end
if condition > 0 and (not version or tonumber(version) ~= condition) then return 1 end

local size = string.len(bytes)
local fits
repeat
  local old_size, old_owner = entry(key)
  local values, total = 1, size
  if old_size then values, total = 0, size - old_size end
  local own_values, own_total = 1, size
  if old_size and old_owner == owner then own_values, own_total = values, total end
  fits = used('values') + values <= tonumber(ARGV[6])
    and used('bytes') + total <= tonumber(ARGV[7])
    and used('values ' .. owner) + own_values <= tonumber(ARGV[8])
    and used('bytes ' .. owner) + own_total <= tonumber(ARGV[9])
  local again = not fits and more
  if again then more = expire() end
until not again
if not fits then return 2 end

local old_size, old_owner = entry(key)
if old_size then charge(old_owner, -1, -old_size) end
charge(owner, 1, size)
redis.call('HSET', entries, key, size .. ' ' .. owner)
redis.call('ZADD', expiries, now + ttl, key)
redis.call('DEL', value)
redis.call('HSET', value, 'v', bytes, 'n', condition > 0 and condition + 1 or 1)
redis.call('PEXPIRE', value, ttl)
for _, of in ipairs({ expiries, entries, usage }) do
  if redis.call('PTTL', of) < ttl then redis.call('PEXPIRE', of, ttl) end
end
return 0
