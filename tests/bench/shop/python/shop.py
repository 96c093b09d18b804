"""What the three tools do, the same for both servers in Python."""

import asyncio
import os

import httpx
from pydantic import BaseModel
from redis.asyncio import Redis

redis = Redis.from_url(os.environ["SHOP_REDIS"], decode_responses=True)
http = httpx.AsyncClient(base_url=os.environ["SHOP_API"])
MORE = int(os.environ.get("SHOP_TOOLS", 0))


class Product(BaseModel):
    id: int
    name: str
    category: str
    price: float


class Found(BaseModel):
    total_found: int
    products: list[Product]
    popular: list[str]
    server_type: str


class CartItem(BaseModel):
    product_id: int
    quantity: int


class Cart(BaseModel):
    user_id: int
    user_name: str
    items: list[CartItem]
    history: list[str]
    server_type: str


class Receipt(BaseModel):
    order_id: int
    status: str
    total: float
    server_type: str


def tools(server_type):
    async def search_products(category: str, min_price: float, max_price: float, limit: int = 10) -> Found:
        """Searches products by category and price"""
        query = {"category": category, "min": min_price, "max": max_price, "limit": limit}
        page, popular = await asyncio.gather(http.get("/products", params=query), redis.zrevrange("popular", 0, 9))
        return Found(**page.json(), popular=popular, server_type=server_type)

    async def get_user_cart(user_id: int) -> Cart:
        """Returns the cart and the last orders of a user"""
        kept = await redis.hgetall(f"cart:{user_id}")
        items = [CartItem(product_id=int(product), quantity=int(quantity)) for product, quantity in kept.items()]
        user, history = await asyncio.gather(http.get(f"/users/{user_id}"), redis.lrange(f"history:{user_id}", 0, 4))
        name = user.json()["name"]
        return Cart(user_id=user_id, user_name=name, items=items, history=history, server_type=server_type)

    async def checkout(user_id: int, items: list[CartItem]) -> Receipt:
        """Orders items for a user"""
        order = {"user_id": user_id, "items": [item.model_dump() for item in items]}
        pipeline = redis.pipeline(transaction=False).incr("orders")
        for item in items:
            pipeline.rpush(f"history:{user_id}", f"{item.product_id}x{item.quantity}")
            pipeline.zadd("popular", {str(item.product_id): item.quantity})
        confirmed, noted = await asyncio.gather(http.post("/orders", json=order), pipeline.execute())
        confirmed = confirmed.json()
        return Receipt(
            order_id=noted[0], status=confirmed["status"], total=confirmed["total"], server_type=server_type
        )

    return [search_products, get_user_cart, checkout]


def more_tools():
    async def done() -> str:
        """Does nothing"""
        return "done"

    return [(f"tool_{number}", done) for number in range(MORE)]
