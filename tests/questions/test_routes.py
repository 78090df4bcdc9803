"""What comes in from outside, by framework: method, path and handler."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cq import RouteDetails, Workspace
from cq.model.errors import UsageError
from cq.questions.routes import RoutesOptions
from tests.support.fixture import parse_fixture


def read_routes(tmp_path: Path, files: str, **asked: Any) -> list[str]:
    root = tmp_path / "repo"
    for path, text in parse_fixture(files).files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    with Workspace.open(root, index_dir=tmp_path / "index") as workspace:
        answer = workspace.routes(RoutesOptions(**asked))
    found = [finding.details for section in answer.sections for finding in section.findings]
    return [
        " ".join(
            word for word in (each.method, each.path, "->", each.handler, each.status.removeprefix("resolved")) if word
        )
        for each in found
        if isinstance(each, RouteDetails)
    ]


PYTHON = {
    "flask": (
        """
#- shop/__init__.py
from flask import Flask
from .views import bp
def hello(): ...
def create_app():
    app = Flask(__name__)
    app.register_blueprint(bp, url_prefix="/api")
    app.add_url_rule("/hello", view_func=hello)
    return app
main = create_app()
@main.get("/top")
def top(): ...
#- shop/views.py
from flask import Blueprint
from flask.views import MethodView
PREFIX = "/items"
bp = Blueprint("bp", __name__, url_prefix="/v1")
@bp.route(PREFIX + "/<int:id>", methods=["GET", "POST"])
def item(id): ...
class Part(MethodView):
    def get(self): ...
    def delete(self): ...
bp.add_url_rule("/part", view_func=Part.as_view("part"))
def test(client):
    client.get("/api/v1")
""",
        [
            "GET /api/items/<int:id> -> item", "POST /api/items/<int:id> -> item", "DELETE /api/part -> Part.delete",
            "GET /api/part -> Part.get", "GET /hello -> hello", "GET /top -> top",
        ],
    ),
    "fastapi": (
        """
#- api/main.py
from fastapi import FastAPI
from fastapi.testclient import TestClient
from api import users
app = FastAPI()
app.include_router(users.router, prefix="/v2")
app.include_router(users.router)
@app.websocket("/live")
async def live(socket): ...
TestClient(app).get("/users/me")
#- api/users.py
from fastapi import APIRouter
router = APIRouter(prefix="/users")
@router.get("/me")
async def me(): ...
@router.api_route("/both", methods=["GET", "PUT"])
async def both(): ...
""",
        [
            "GET /users/both -> both", "PUT /users/both -> both", "GET /users/me -> me", "GET /v2/users/both -> both",
            "PUT /v2/users/both -> both", "GET /v2/users/me -> me", "/live -> live",
        ],
    ),
    "django": (
        """
#- site/urls.py
from django.urls import include, path
from site import views
inner = [path("c/", views.c)]
urlpatterns = [
    path("a/<int:x>", views.a, name="a"),
    path("shop/", include("shop.urls")),
    path("in/", include(inner)),
    path("both/", include([path("d/", views.D.as_view())])),
]
#- site/views.py
from django.views import View
from django.contrib.auth.decorators import login_required
@login_required
def a(request, x): ...
def c(request): ...
class D(View):
    def get(self, request): ...
#- shop/urls.py
from django.urls import include, path
from rest_framework.routers import DefaultRouter
from shop.api import UserSet
router = DefaultRouter()
router.register("users", UserSet)
urlpatterns = [path("api/", include(router.urls))]
#- shop/api.py
from rest_framework.viewsets import ViewSet
from rest_framework.decorators import action
class UserSet(ViewSet):
    def list(self, request): ...
    def retrieve(self, request, pk): ...
    @action(detail=True, methods=["post"])
    def ban(self, request, pk): ...
#- shop/apps.py
from django.db.models.signals import post_save
from django.dispatch import receiver
@receiver(post_save)
def saved(sender, **kw): ...
#- shop/management/commands/sweep.py
from django.core.management.base import BaseCommand
class Command(BaseCommand):
    def handle(self): ...
""",
        [
            "* /a/<int:x> -> a", "GET /both/d/ -> D.get", "* /in/c/ -> c", "GET /shop/api/users/ -> UserSet.list",
            "GET /shop/api/users/{pk}/ -> UserSet.retrieve", "POST /shop/api/users/{pk}/ban/ -> UserSet.ban",
            "sweep -> Command.handle", "{post_save} -> saved",
        ],
    ),
    "others": (
        """
#- web.py
from tornado.web import Application, RequestHandler
class Page(RequestHandler):
    def get(self): ...
    def post(self): ...
app = Application([(r"/page/(.*)", Page)])
#- aio.py
from aiohttp import web
routes = web.RouteTableDef()
@routes.get("/table")
async def table(request): ...
async def plain(request): ...
app = web.Application()
app.add_routes([web.post("/plain", plain)])
app.router.add_put("/put", plain)
#- tool.py
import argparse
import click
@click.group()
def cli(): ...
@cli.command("show-it")
def show(): ...
@cli.command()
def drop_all(): ...
def run(args): ...
sub = argparse.ArgumentParser().add_subparsers()
go = sub.add_parser("go")
go.set_defaults(func=run)
#- jobs.py
from celery import Celery, shared_task
app = Celery()
@app.task
def mail(): ...
@shared_task(name="clean.all")
def clean(): ...
""",
        [
            "GET /page/(.*) -> Page.get", "POST /page/(.*) -> Page.post", "POST /plain -> plain", "PUT /put -> plain",
            "GET /table -> table", "cli -> cli", "drop-all -> drop_all", "go -> run", "show-it -> show",
            "clean.all -> clean", "mail -> mail",
        ],
    ),
}  # fmt: skip
SCRIPT = {
    "express": (
        """
#- app.js
const express = require('express');
const app = express();
function auth(req, res, next) {}
app.use('/shop', auth, require('./shop'));
app.get('/home', (req, res) => {});
app.get('title');
#- shop.js
const express = require('express');
const router = express.Router();
const handlers = require('./handlers');
router.route('/x').get(handlers.list).post((req, res) => {});
router.get('/y', handlers.list);
module.exports = router;
#- handlers.js
exports.list = function(req, res) {};
#- plug.js
module.exports = async function(server) { server.delete('/plug', async () => {}) }
#- client.ts
import axios from 'axios';
export const load = () => axios.get('/home', {});
""",
        ["GET /home -> <lambda>", "DELETE /plug -> exports.<lambda> ambiguous",
         "GET /shop/x -> list", "POST /shop/x -> <lambda>", "GET /shop/y -> list"],
    ),
    "nest": (
        """
#- cats.ts
import { Controller, Get, Post } from '@nestjs/common';
@Controller('cats')
export class Cats {
  @Get(':id') one(id: string): string { return id }
  @Post() make() {}
}
#- package.json
{"dependencies": {"next": "15"}}
#- app/users/[id]/route.ts
export async function GET() {}
export const dynamic = 1;
#- app/(shop)/cart/page.tsx
export default function Cart() { return null }
#- pages/api/mail.ts
export default function handler(req, res) {}
#- trpc.ts
import { initTRPC } from '@trpc/server';
const t = initTRPC.create();
const deep = 1;
export const root = t.router({
  hello: t.procedure.query(() => 1),
  deep: t.router({ add: t.procedure.mutation(() => 2) }),
});
""",
        [
            "* /api/mail -> handler", "GET /cart -> Cart", "POST /cats -> Cats.make", "GET /cats/:id -> Cats.one",
            "GET /users/[id] -> GET", "mutation deep.add -> <lambda>", "query hello -> <lambda>",
        ],
    ),
}  # fmt: skip
OTHERS = {
    "rust": (
        """
#- src/main.rs
use axum::{routing::get, Router};
fn main() { let app = Router::new().route("/a", get(list).post(create)).nest("/n", sub()); }
fn sub() -> Router { Router::new().route("/b", get(list)) }
async fn list() {}
async fn create() {}
#[actix_web::get("/q")]
async fn q() {}
#[no_mangle]
pub extern "C" fn ffi_add() {}
""",
        ["GET /a -> list", "POST /a -> create", "GET /n/b -> list", "GET /q -> q", "ffi_add -> ffi_add"],
    ),
    "tables": (
        """
#- C.java
import org.springframework.web.bind.annotation.*;
@RestController
@RequestMapping("/api")
class C {
  @GetMapping("/x/{id}")
  public String x(int id) { return ""; }
}
#- main.go
package main
import "github.com/gin-gonic/gin"
func main() {
	r := gin.Default()
	g := r.Group("/v1")
	g.GET("/ping", ping)
}
func ping(c *gin.Context) {}
#- web.php
<?php
use Illuminate\\Support\\Facades\\Route;
Route::get('/users', [UserController::class, 'index']);
class UserController { function index() {} }
#- Users.cs
using Microsoft.AspNetCore.Mvc;
[Route("api/[controller]")]
public class UsersController : ControllerBase {
  [HttpGet("{id}")]
  public int Get(int id) { return id; }
}
#- config/routes.rb
Rails.application.routes.draw do
  namespace :admin do
    get "/about", to: "pages#about"
  end
end
#- app/pages_controller.rb
class PagesController
  def about
  end
end
""",
        [
            "GET /admin/about -> PagesController.about", "GET /api/users/{id} -> UsersController.Get",
            "GET /api/x/{id} -> C.x", "GET /users -> UserController.index", "GET /v1/ping -> ping ambiguous",
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", [*PYTHON, *SCRIPT, *OTHERS])
def test_routes_of_a_framework(name: str, tmp_path: Path):
    files, wanted = (PYTHON | SCRIPT | OTHERS)[name]
    assert read_routes(tmp_path, files) == wanted


def test_what_is_asked_for(tmp_path: Path):
    files = PYTHON["flask"][0]
    assert read_routes(tmp_path, files, method="delete") == ["DELETE /api/part -> Part.delete"]
    assert read_routes(tmp_path, files, pattern="/api/*>") == [
        "GET /api/items/<int:id> -> item",
        "POST /api/items/<int:id> -> item",
    ]
    assert read_routes(tmp_path, files, of="Part") == ["DELETE /api/part -> Part.delete", "GET /api/part -> Part.get"]
    assert read_routes(tmp_path, files, of="shop.views", kind="cli") == []
    with pytest.raises(UsageError, match="no routes of kind 'web'"):
        read_routes(tmp_path, files, kind="web")
