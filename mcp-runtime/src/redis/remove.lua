-- Removes a value, and what it costs.
-- KEYS: value, table's expiries, table's entries, table's usage; ARGV: key
local text = redis.call('HGET', KEYS[3], ARGV[1])
if text then
  local size, owner = string.match(text, '^(%d+) (.*)$')
  for field, by in pairs({ ['values'] = 1, ['bytes'] = size, ['values ' .. owner] = 1, ['bytes ' .. owner] = size }) do
    if redis.call('HINCRBY', KEYS[4], field, -by) <= 0 then redis.call('HDEL', KEYS[4], field) end
  end
  redis.call('HDEL', KEYS[3], ARGV[1])
  redis.call('ZREM', KEYS[2], ARGV[1])
end
redis.call('DEL', KEYS[1])
return 0
