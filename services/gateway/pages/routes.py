"""All pages. Each is a topic with its routes, its view and its templates."""

from fastapi import APIRouter

from services.gateway.pages import appearance, asset_files, search, sign_in
from services.gateway.pages.annotations import routes as annotations
from services.gateway.pages.answers import export as answer_files
from services.gateway.pages.answers import routes as answers
from services.gateway.pages.audit import routes as audit
from services.gateway.pages.batches import routes as batches
from services.gateway.pages.compare import export as compared_files
from services.gateway.pages.compare import routes as compare
from services.gateway.pages.datasets import routes as datasets
from services.gateway.pages.imports import routes as imports
from services.gateway.pages.leaderboard import ratings
from services.gateway.pages.leaderboard import routes as leaderboard
from services.gateway.pages.models import routes as models
from services.gateway.pages.orders import routes as orders
from services.gateway.pages.overview import routes as overview
from services.gateway.pages.playground import routes as playground
from services.gateway.pages.queue import routes as queue
from services.gateway.pages.rescoring import routes as rescoring
from services.gateway.pages.rollouts import routes as rollouts
from services.gateway.pages.rollouts import socket as rollout_socket
from services.gateway.pages.runs import actions as run_actions
from services.gateway.pages.runs import chosen as chosen_runs
from services.gateway.pages.runs import export as run_files
from services.gateway.pages.runs import judge_form
from services.gateway.pages.runs import labels as run_labels
from services.gateway.pages.runs import routes as runs
from services.gateway.pages.schedules import routes as schedules
from services.gateway.pages.settings import api_keys, notices, projects
from services.gateway.pages.settings import routes as settings
from services.gateway.pages.suites import routes as suites

# One per line.
ROUTERS: tuple[APIRouter, ...] = (
    asset_files.router,
    appearance.router,
    sign_in.router,
    overview.router,
    search.router,
    # Before the runs, whose ids match any word.
    orders.router,
    run_files.router,
    chosen_runs.router,
    runs.router,
    run_actions.router,
    run_labels.router,
    judge_form.router,
    answers.router,
    answer_files.router,
    annotations.router,
    rescoring.router,
    rollouts.router,
    rollout_socket.router,
    compare.router,
    compared_files.router,
    batches.router,
    datasets.router,
    imports.router,
    leaderboard.router,
    ratings.router,
    models.router,
    playground.router,
    suites.router,
    queue.router,
    schedules.router,
    settings.router,
    api_keys.router,
    projects.router,
    notices.router,
    audit.router,
)
